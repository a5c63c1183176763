#pragma once

#include "widelimit/attention_mask.hpp"
#include "widelimit/matrix.hpp"

/// The covariance SDE of shaped residual networks in the limit of infinite depth and width at a fixed ratio.
///
/// m tokens, width n, V = X X^T / n (m x m, positive semidefinite). Layer l of a network is time t = l / n;
/// one layer is one block as the paper writes it, a transformer block (attention and feedforward) counts
/// once.
///
/// Source  Noci, Li, Li, He, Hofmann, Maddison, Roy, "The Shaped Transformer", 2023, arXiv:2306.17759v1.
namespace widelimit::covariance_sde {

using Eigen::Index;

/// c_+ and c_- of the shaped ReLU with slopes 1 + c_+ / sqrt(n) above 0 and 1 + c_- / sqrt(n) below.
struct ShapedSlopes {
  double plus = 0;
  double minus = -1;
};

/// The actual slopes of a leaky ReLU above and below 0: (1, 0) is ReLU.
struct ActivationSlopes {
  double plus = 1;
  double minus = 0;

  /// 1 / E sigma(g)^2 = 2 / (s_+^2 + s_-^2), g standard normal.
  [[nodiscard]] double normaliser() const;
};

/// The slopes of the shaped ReLU at a given width. Errors: ArgumentError unless width is positive, slopes
/// finite.
[[nodiscard]] ActivationSlopes shaped_slopes(ShapedSlopes slopes, Index width);

/// Shortcut weight lambda and residual weight gamma of a block x -> lambda x + gamma f(x).
class ResidualWeights {
 public:
  /// lambda = sqrt(1 - gamma^2). Errors: ArgumentError unless 0 <= gamma_squared <= 1.
  [[nodiscard]] static ResidualWeights shaped(double gamma_squared);

  /// Errors: ArgumentError unless both are at least 0 and lambda^2 + gamma^2 = 1 within 1e-12.
  [[nodiscard]] static ResidualWeights from(double lambda, double gamma);

  /// lambda = gamma = 1, which only the unshaped baselines accept.
  [[nodiscard]] static ResidualWeights unit();

  [[nodiscard]] double lambda() const;
  [[nodiscard]] double gamma() const;
  [[nodiscard]] double gamma_squared() const { return gamma_squared_; }
  [[nodiscard]] bool preserves_variance() const { return preserves_variance_; }

 private:
  ResidualWeights(double gamma_squared, bool preserves_variance)
      : gamma_squared_{gamma_squared}, preserves_variance_{preserves_variance} {}

  double gamma_squared_;
  bool preserves_variance_;
};

/// Coefficients of dV = b(V) dt + Sigma(V)^{1/2} dB (docs/theory/covariance-sde.md, section 4):
///
///     b     = relu_drift nu(rho) sqrt(V^aa V^bb) + attention_drift b_att(V)
///     Sigma = linear_noise Sigma_lin(V) + attention_noise A(V)
///
/// Build it by the functions below and combine blocks by stack(); the members are public for inspection.
struct SdeModel {
  double relu_drift = 0;
  double attention_drift = 0;
  double linear_noise = 0;
  double attention_noise = 0;
  ShapedSlopes slopes{0, 0};
  AttentionMask mask = AttentionMask::full;
};

/// Plain multilayer perceptron with shaped ReLU: weights 1, 0, 1, 0.
[[nodiscard]] SdeModel mlp_model(ShapedSlopes slopes);

/// Residual feedforward blocks (eq. 4, Theorem 3.2): weights gamma^2, 0, gamma^2 (2 - gamma^2 (1 - 1 /
/// kappa)), 0, where kappa is hidden width over width; the paper's kappa = 1 gives 2 gamma^2.
[[nodiscard]] SdeModel resnet_model(ResidualWeights residual, ShapedSlopes slopes, double hidden_ratio = 1);

/// Residual shaped attention (eqs. 1 and 9, Theorem 4.2), temperature = tau_0: weights 0, gamma^2 / tau_0^2,
/// gamma^2 (2 - gamma^2), gamma^4 / (tau_0^2 heads). The key width drops out of the limit. `heads` >= 1 heads have
/// their own queries and keys and slices of the values, joined without an output matrix.
[[nodiscard]] SdeModel attention_model(ResidualWeights residual, double temperature,
                                       AttentionMask mask = AttentionMask::full, Index heads = 1);

/// Shaped transformer (eq. 11, Corollary 4.3): attention and feedforward block with the same residual
/// weights.
[[nodiscard]] SdeModel transformer_model(ResidualWeights residual, double temperature, ShapedSlopes slopes);

/// Two kinds of blocks in turn, counted as one layer: drifts and diffusions add. Errors: ArgumentError if
/// both have a ReLU drift with different slopes, or both attend with different masks.
[[nodiscard]] SdeModel stack(const SdeModel& first, const SdeModel& second);

/// The model with the exact ReLU drift of a network of the given width: larger by the normaliser c of its
/// slopes, 1 + O(width^{-1/2}).
[[nodiscard]] SdeModel with_finite_width_drift(SdeModel model, Index width);

}  // namespace widelimit::covariance_sde
