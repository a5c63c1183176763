#pragma once

#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// drift() of any square matrix, because trial steps of a solver may leave the cone: correlations are brought to
/// [-1, 1].
[[nodiscard]] Matrix<double> unchecked_drift(const SdeModel& model, const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
