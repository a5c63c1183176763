#pragma once

#include <vector>

#include "widelimit/gp/fit.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/gp/target_scale.hpp"

namespace widelimit::gp {

/// Outputs that share a regulariser, and so a factorization.
struct OutputGroup {
  std::vector<Index> outputs;
  double regulariser;
};

/// Groups of outputs by what was chosen for each, in the order of their first outputs. One selection holds for all
/// outputs; none: `given` does.
[[nodiscard]] std::vector<OutputGroup> output_groups(const std::vector<Selection>& selections, double given,
                                                     Index outputs);

/// Scores that were computed with standardised targets, in the units of the targets. Selections are those of each
/// output, unless the scale changes nothing.
[[nodiscard]] std::vector<Selection> in_units_of(const TargetScale& scale, std::vector<Selection> selections,
                                                 Index n);

/// Scores of logarithms as those of the targets, whose densities are divided by them; squared errors stay those of
/// logarithms. `problem` and `input_targets` are in logarithms.
[[nodiscard]] std::vector<Selection> of_logarithms(const Problem& problem,
                                                   const Matrix<double>& input_targets,
                                                   std::vector<Selection> selections);

}  // namespace widelimit::gp
