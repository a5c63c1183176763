#include "cli/gp/gp_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/gp/grid_edge.hpp"
#include "cli/output/text_parts.hpp"

namespace widelimit::cli {
namespace {

constexpr const char* columns = "  {:<6} {:>8} {:>11} {:>9} {:>9} {:>9} {:>8} {:>8}\n";

std::string time_text(const std::optional<double>& time) {
  if (!time) return "";
  return std::isinf(*time) ? "inf" : fmt::format("{:.4g}", *time);
}

/// Candidates that could not be solved for, by conjugate gradients or by a factorization.
std::string unsolved_text(const std::string& name, const std::vector<gp::RegulariserScore>& scores,
                          bool by_iterations) {
  std::string values;
  for (const gp::RegulariserScore& score : scores)
    if (!score.unsolved.empty())
      values += fmt::format("{}{:.3g}", values.empty() ? "" : ", ", score.relative_regulariser);
  if (values.empty()) return "";
  if (!by_iterations)
    return fmt::format(
        "{}: the candidates {} are left out: with them the kernel is not positive definite in double "
        "precision (give --candidates without them)\n",
        name, values);
  return fmt::format(
      "{}: the candidates {} are left out: their relative residuals stall above the one asked for (give "
      "--candidates without them, or a larger --residual)\n",
      name, values);
}

/// Where the rounding errors of double, times the condition number, reach what people look at.
std::string lost_digits_text(const GpPrediction& prediction) {
  constexpr double digits_of_double = 15.95, few = 4;
  const double left = std::max(0.0, digits_of_double - std::log10(prediction.condition_number));
  if (prediction.condition_number == 0 || left >= few) return "";
  return fmt::format(
      "{}: with the regulariser {:.3g} the kernel has a condition number of about {:.0e}, which leaves "
      "{:.0f} of the 16 digits of double to the predictions: take a larger --regulariser, or inputs without "
      "duplicates\n",
      prediction.name, prediction.regulariser.minCoeff(), prediction.condition_number, left);
}

}  // namespace

std::string gp_table(const GpResult& result) {
  std::string text = fmt::format(fmt::runtime(columns), "kernel", "time", "regulariser", "amplitude",
                                 "accuracy", "MSE", "Gram s", "solve s");
  constexpr const char *number = "{:.2e}", *numbers = "{:.0e}-{:.0e}";
  for (const GpPrediction& prediction : result.predictions) {
    const auto& scores = prediction.scores;
    text += fmt::format(fmt::runtime(columns), prediction.time ? "ntk" : "nngp", time_text(prediction.time),
                        shared_or_range(prediction.regulariser, number, numbers),
                        shared_or_range(prediction.amplitude, number, numbers),
                        scores && scores->accuracy ? fmt::format("{:.2f} %", 100 * *scores->accuracy) : "-",
                        scores ? squared_error_text(scores->mean_squared_error) : "-",
                        fmt::format("{:.2f}", result.gram_seconds),
                        fmt::format("{:.2f}", prediction.solve_seconds));
  }
  return text;
}

std::string edge_notes(const GpResult& result, bool is_double, bool rows_repeat) {
  std::string text;
  for (const GpPrediction& prediction : result.predictions) {
    text += lost_digits_text(prediction);
    if (prediction.selections.empty())
      text += below_floor_text(prediction.name, prediction.regulariser(0), prediction.noise_floor, is_double);
    for (std::size_t c = 0; c < prediction.selections.size(); ++c) {
      const gp::Selection& selection = prediction.selections[c];
      const std::string name = prediction.selections.size() == 1
                                   ? prediction.name
                                   : fmt::format("{}, output {}", prediction.name, c);
      text += unsolved_text(name, selection.scores, prediction.iterations.has_value());
      text += edge_text(name, selection.best.value(), selection.scores,
                        {prediction.criterion, is_double, rows_repeat});
    }
  }
  return text;
}

}  // namespace widelimit::cli
