#pragma once

#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// The normals of one time step, both m x m iid. G_1 drives Sigma_lin through G_1 + G_1^T, G_2 the attention
/// tensor.
struct StepNoise {
  Matrix<double> g1;
  Matrix<double> g2;
};

/// The matrix N with covariance Sigma(V), without the D x D matrix, from the lower root of V
/// (docs/theory/covariance-sde.md, section 5.1):
///     N = sqrt(s_lin / 2) L (G_1 + G_1^T) L^T + sqrt(s_att) / m (L G_2 K^T + K G_2^T L^T),  K = V P L.
/// Under a causal mask row a of the second matrix is sqrt(s_att) V J_a L (L_a G_2)^T, J_a as in section 3.
///
/// Errors  ArgumentError unless v is a covariance and the noise is m x m.
/// Cost    O(m^3).
[[nodiscard]] Matrix<double> noise_increment(const SdeModel& model, const Matrix<double>& v,
                                             const StepNoise& noise);

/// V + h b(V) + sqrt(h) N, the paper's scheme. The result may leave the positive semidefinite cone; the
/// ensembles detect, clip and count that. Errors as above, and unless step is positive.
[[nodiscard]] Matrix<double> euler_maruyama_step(const SdeModel& model, const Matrix<double>& v, double step,
                                                 const StepNoise& noise);

/// One step of the geometric scheme (docs/theory/covariance-sde.md, section 5.3): half a step of the ReLU
/// drift and of the S_2 drift, then V <- L exp(Xi) L^T, then the two halves again. Of weak order one; stays
/// in the cone and keeps the rank of V.
///
/// Errors  as above, for a causal mask, and unless step relu_drift (c_+ - c_-)^2 <= 8, beyond which a half step could
///         leave the cone.
[[nodiscard]] Matrix<double> geometric_step(const SdeModel& model, const Matrix<double>& v, double step,
                                            const StepNoise& noise);

}  // namespace widelimit::covariance_sde
