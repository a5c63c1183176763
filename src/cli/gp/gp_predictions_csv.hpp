#pragma once

#include <string>

#include "cli/gp/gp_files.hpp"

namespace widelimit::cli {

/// predictions.csv: a row for each test input. Its number and its name, the target; then for each prediction the class
/// and its probability, the standard deviations of the function and of an observation, which has noise, the
/// probabilities of all classes and the means of all outputs. Numbers have
/// targets, deviations, the ends of central intervals of an observation, and means, of each output; several are called
/// by the columns that they come from, or numbered.
[[nodiscard]] std::string predictions_csv(const PredictionFacts& info, const GpResult& result,
                                          const std::optional<Matrix<double>>& targets);

}  // namespace widelimit::cli
