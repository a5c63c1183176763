#include "widelimit/gp/leave_one_out.hpp"

#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/index.hpp"

namespace widelimit::gp {

std::vector<Index> all_inputs(Index n) {
  std::vector<Index> inputs(static_cast<std::size_t>(n));
  std::iota(inputs.begin(), inputs.end(), Index{0});
  return inputs;
}

/// At most a thousand inputs, evenly spread over the n: enough for a scale that is fitted to their residuals.
std::vector<Index> representative_inputs(Index n) {
  constexpr Index most = 1000;
  if (n <= most) return all_inputs(n);
  std::vector<Index> inputs;
  for (Index i = 0; i < most; ++i) inputs.push_back(i * n / most);
  return inputs;
}

double LeaveOneOut::negative_log_predictive_density() const {
  // The residuals stand for the means of targets that are 0, because only differences count.
  return gp::negative_log_predictive_density(residuals, variances, 0,
                                             Matrix<double>::Zero(residuals.rows(), residuals.cols()));
}

double LeaveOneOut::mean_squared_error() const {
  return residuals.squaredNorm() / static_cast<double>(residuals.size());
}

double LeaveOneOut::most_likely_scale(const char* where) const {
  // a = mean r^2 / v (docs/theory/inference.md, section 3).
  const double sum = (residuals.rowwise().squaredNorm().array() / variances.array()).sum();
  if (!std::isfinite(sum))
    throw NumericalError(fmt::format(
        "{}: networks trained on all inputs but one have outputs without variance there; regularise", where));
  return sum / static_cast<double>(residuals.size());
}

Vector<double> LeaveOneOut::most_likely_scales(const char* where) const {
  Vector<double> scales(residuals.cols());
  for (Index c = 0; c < residuals.cols(); ++c)
    scales(c) = LeaveOneOut{residuals.col(c), variances}.most_likely_scale(where);
  return scales;
}

}  // namespace widelimit::gp
