#pragma once

#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::covariance_sde {

/// Drift of a correlation under the shaped ReLU (eq. 6): (c_+ - c_-)^2 / (2 pi) (sqrt(1 - rho^2) - rho arccos
/// rho).
///
/// Accuracy  4e-15 relative for every rho; the printed form loses all digits near rho = 1.
/// Edges     rho is clamped to [-1, 1]; nu(1) = 0 exactly.
[[nodiscard]] double correlation_drift(double rho, ShapedSlopes slopes);

/// c E[sigma(u) sigma(v)] of unit Gaussians with correlation rho: the exact one-layer map of the shaped ReLU
/// network.
[[nodiscard]] double relu_correlation_map(double rho, ActivationSlopes slopes);

/// The pairs (a, b), a <= b, row by row: the coordinates in which the SDE lives. m (m + 1) / 2 entries.
[[nodiscard]] Vector<double> upper_triangle(const Matrix<double>& symmetric);

/// First and second moment of the softmax expansion (eq. 10):
///     S_1^{ad,bw} = V^{ab} C_{ab}^{dw},  S_2^{ad} = V^{aa} (C_{aa}^{dd} - mean over d),
/// C_{ab} the covariance of tokens d and w, centred by the means over what the rows a and b see; 0 where these do not
/// see d or w. S_2 as an m x m matrix; S_1 entry by entry.
[[nodiscard]] double first_softmax_moment(const Matrix<double>& v, Index a, Index d, Index b, Index w,
                                          AttentionMask mask = AttentionMask::full);
/// All of them: row a m + d, column b m + w. O(m^6).
[[nodiscard]] Matrix<double> first_softmax_moments(const Matrix<double>& v,
                                                   AttentionMask mask = AttentionMask::full);
[[nodiscard]] Matrix<double> second_softmax_moment(const Matrix<double>& v,
                                                   AttentionMask mask = AttentionMask::full);

/// Drift b(V) of the model, m x m symmetric. O(m^3) with a causal mask O(m^4).
/// Errors  ArgumentError unless v is a covariance.
[[nodiscard]] Matrix<double> drift(const SdeModel& model, const Matrix<double>& v);

/// V^{ad} V^{bw} + V^{aw} V^{bd} over all pairs of coordinates: D x D, D = m (m + 1) / 2. O(m^4).
[[nodiscard]] Matrix<double> linear_diffusion(const Matrix<double>& v);

/// The tensor A of Theorem 4.2 over all pairs of coordinates, D x D. From M = V C V each entry costs O(1), so
/// O(m^4) in all instead of the O(m^6) of the printed sums; with a causal mask O(m^5).
[[nodiscard]] Matrix<double> attention_diffusion(const Matrix<double>& v, AttentionMask mask);

/// Sigma(V) of the model, D x D. For inspection and tests: the integrators draw the noise without it.
/// Errors  ArgumentError unless v is a covariance.
[[nodiscard]] Matrix<double> diffusion(const SdeModel& model, const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
