#include "gp/inference/output_groups.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace widelimit::gp {

std::vector<OutputGroup> output_groups(const std::vector<Selection>& selections, double given,
                                       Index outputs) {
  if (selections.size() <= 1) {
    std::vector<Index> all(static_cast<std::size_t>(outputs));
    std::iota(all.begin(), all.end(), Index{0});
    return {{std::move(all), selections.empty() ? given : selections.front().best.value()}};
  }
  std::vector<OutputGroup> groups;
  for (Index output = 0; output < outputs; ++output) {
    const double regulariser = selections[static_cast<std::size_t>(output)].best.value();
    auto group = std::ranges::find(groups, regulariser, &OutputGroup::regulariser);
    if (group == groups.end()) group = groups.insert(groups.end(), {{}, regulariser});
    group->outputs.push_back(output);
  }
  return groups;
}

/// Selections are made with standardised targets: squares get the factor's square, and the logarithm of each density
/// loses that of the factor.
std::vector<Selection> in_units_of(const TargetScale& scale, std::vector<Selection> selections, Index n) {
  if (scale.is_identity()) return selections;
  for (std::size_t c = 0; c < selections.size(); ++c) {
    const double factor = scale.factors()(static_cast<Index>(c)), logarithm = std::log(factor);
    for (RegulariserScore& score : selections[c].scores) {
      score.mean_squared_error *= factor * factor;
      score.negative_log_predictive_density += logarithm;
      score.leave_one_out += logarithm;
      score.log_marginal_likelihood -= static_cast<double>(n) * logarithm;
    }
  }
  return selections;
}

std::vector<Selection> of_logarithms(const Problem& problem, const Matrix<double>& input_targets,
                                     std::vector<Selection> selections) {
  // One for all outputs only where there is one output.
  for (std::size_t c = 0; c < selections.size(); ++c) {
    const auto output = static_cast<Index>(c);
    const double of_rows = problem.targets.col(output).mean(), of_inputs = input_targets.col(output).sum(),
                 of_validation = problem.validation ? problem.validation->col(output).mean() : 0;
    for (RegulariserScore& score : selections[c].scores) {
      score.negative_log_predictive_density += of_validation;
      score.leave_one_out += of_rows;
      score.log_marginal_likelihood -= of_inputs;
    }
  }
  return selections;
}

}  // namespace widelimit::gp
