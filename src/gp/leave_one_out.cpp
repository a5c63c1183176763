#include "widelimit/gp/leave_one_out.hpp"

#include "widelimit/gp/metrics.hpp"

namespace widelimit::gp {

double LeaveOneOut::negative_log_predictive_density() const {
  // Of residuals as the means of targets that are 0.
  return gp::negative_log_predictive_density(residuals, variances, 0,
                                             Matrix<double>::Zero(residuals.rows(), residuals.cols()));
}

double LeaveOneOut::mean_squared_error() const {
  return residuals.squaredNorm() / static_cast<double>(residuals.size());
}

}  // namespace widelimit::gp
