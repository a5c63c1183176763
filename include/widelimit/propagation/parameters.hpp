#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/attention_mask.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/activations.hpp"

/// Signal propagation in randomly initialised transformers: how norms, angles and gradients of tokens grow
/// with depth, in the limit of infinite width.
///
/// n tokens X_i of width d pass through L independent blocks, attention first, then a multilayer perceptron:
///
///     X <- ta_A X + alpha_A ATT(Norm X),  X <- ta_M X + alpha_M MLP(Norm X),  ta^2 = 1 - alpha^2 unless given,
///     Norm(X_i) = sqrt(d) X_i / |X_i|,  ATT(Y)_i = V sum_j A_ij Y_j,  A = softmax((QY)(KY)^T / sqrt(d)),
///     MLP(Y) = W^l phi(... phi(W^0 Y)),
///
/// weights independent centred Gaussians of variance 1/d (V), sigma_A/d (Q and K, so that Q^T K has entries
/// of variance sigma_A^2/d), sigma_w^2/d (W^0 .. W^{l-1}) and sigma_out^2/d (W^l). All squared norms and dot
/// products are divided by d throughout: q = |X_i|^2 / d, p = X_i X_j / d.
///
/// Source  Cowsik, Nebabu, Qi, Ganguli, "Geometric dynamics of signal propagation predict trainability of
///         transformers", 2024, arXiv:2403.02579v1; equation numbers in this folder are theirs. Where the
///         paper contradicts itself the formulas here are the ones that finite networks confirm: the MLP's
///         linearisation divides by the norm at its own input, and the last MLP matrix has its own gain.
namespace widelimit::propagation {

using Eigen::Index;

/// The gain sigma_out of the last MLP matrix.
class OutputGain {
 public:
  /// sigma_out = 1: what the paper's figures use.
  [[nodiscard]] static OutputGain unit() { return OutputGain(Kind::fixed, 1); }
  /// sigma_out = sigma_w: what the paper's section 2 says.
  [[nodiscard]] static OutputGain shared() { return OutputGain(Kind::shared, 0); }
  [[nodiscard]] static OutputGain fixed(double sigma_out) { return OutputGain(Kind::fixed, sigma_out); }

  [[nodiscard]] double value(double sigma_w) const { return kind_ == Kind::shared ? sigma_w : sigma_out_; }

 private:
  enum class Kind { fixed, shared };
  OutputGain(Kind kind, double sigma_out) : kind_{kind}, sigma_out_{sigma_out} {}

  Kind kind_;
  double sigma_out_;
};

/// A transformer at initialisation. The gains are standard deviations.
struct Parameters {
  Index tokens = 256;    ///< n >= 2.
  double sigma_A = 1;    ///< Scale of the attention scores, >= 0.
  double alpha_A = 0.5;  ///< Strength of the attention branch, in [0, 1].
  double alpha_M = 0.5;  ///< Strength of the MLP branch, in [0, 1]; not both strengths 0.
  double sigma_w = 1;    ///< Gain of the hidden MLP matrices, >= 0.
  OutputGain sigma_out = OutputGain::unit();
  int mlp_depth = 2;  ///< Number of nonlinearities, >= 1; the MLP has one more matrix.
  numerics::ActivationPtr activation = numerics::tanh();
  /// Factors ta_A and ta_M of the skip connections, >= 0; none: sqrt(1 - alpha^2). With 1 for both, as in most
  /// transformers, norms grow with depth and have no fixed point;
  /// exponents are then means over depth.
  std::optional<double> skip_A = {}, skip_M = {};
};

/// The names that activation_named() knows, sorted: the kinds of nonlinearities of network files that need no fields
/// (widelimit/layers/kinds.hpp) and do not jump, and "linear".
[[nodiscard]] std::vector<std::string> activation_names();

/// The nonlinearity of a name, its fields the defaults: "tanh", "relu", "linear", ... ArgumentError, with all names,
/// for another one.
[[nodiscard]] numerics::ActivationPtr activation_named(const std::string& name);

/// Whether there is a squared norm that a block leaves unchanged, ta_A ta_M < 1; otherwise norms grow forever.
[[nodiscard]] bool has_fixed_norm(const Parameters& parameters);

/// Throws ArgumentError naming the parameter that is out of range. An activation that jumps is refused: its
/// correlations leave 1 with infinite slope.
void require_parameters(const char* where, const Parameters& parameters);

}  // namespace widelimit::propagation
