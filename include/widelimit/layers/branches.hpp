#pragma once

#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// A branch of a sum or product: its output is multiplied by `scale`, its covariances by scale^2. No layers:
/// the skip connection.
struct Branch {
  double scale = 1;
  Layers layers = {};
};

/// A branch of a concatenation: `share` of the channels, in (0, 1].
struct ConcatBranch {
  double share;
  Layers layers = {};
};

/// Sum of branches with independent weights. All but one branch must end in fresh weights, followed by linear
/// layers or norms only. Throws ArgumentError for no branch or a scale that is not finite.
[[nodiscard]] Layer sum(std::vector<Branch> branches);

/// Elementwise product of independent branches; same condition.
[[nodiscard]] Layer product(std::vector<Branch> branches);

/// Channels of the branches side by side; the shares must sum to 1 (ArgumentError).
[[nodiscard]] Layer concat(std::vector<ConcatBranch> branches);

/// The layers `times` times over, with new weights each time. times >= 1 (ArgumentError).
[[nodiscard]] Layer repeat(Index times, Layers layers);

}  // namespace widelimit::layers
