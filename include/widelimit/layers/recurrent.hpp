#pragma once

#include "widelimit/layers/activations.hpp"
#include "widelimit/network/layer.hpp"

/// Layers whose weights are shared over time.
namespace widelimit::layers {

/// The end of a sequence at which a recurrent layer begins.
enum class RecurrentDirection { forward, backward };

/// A recurrent layer; variances are those of docs/theory/recurrent.md.
struct RecurrentOptions {
  double weight_variance = 1;     ///< w, of the weights of the inputs; >= 0
  double recurrent_variance = 1;  ///< r, of the weights of the hidden state; >= 0
  double bias_variance = 0;       ///< b; >= 0
  Layer nonlinearity = relu();    ///< Any nonlinearity layer, e.g. erf().
  RecurrentDirection direction = RecurrentDirection::forward;
};

/// A simple recurrent cell (Elman) over the positions of a sequence, whose weights are the same at all times:
///
///     z_t = sqrt(w / N) U x_t + sqrt(r / n) W h_{t-1} + sqrt(b) beta,   h_t = phi(z_t),   h_0 = 0.
///
/// It leaves h_t at every position; weights are trained. Layers on it are further cells, dense layers, and readouts:
/// global_average_pool(), or slice() of the last position. Two branches of both directions, concatenated, are a
/// bidirectional layer. With Z the covariance of z and V, V' the dual of phi and of its derivative,
///
///     Z_st = w K_st + r H_{s-1,t-1} + b,   H_st = V(Z_ss, Z'_tt, Z_st),   H_0t = H_s0 = 0,
///     S_st = Z_st + w T_st + r T'_{s-1,t-1},   T'_st = V'(Z_ss, Z'_tt, Z_st) S_st.
///
/// Positions that masks leave out are passed over: the state behind them is that before.
///
/// Errors  ArgumentError for variances that are negative or not finite, and a layer that is no nonlinearity;
///         NetworkError for inputs that are not sequences.
/// Cost    a dual for each of the d d' entries of a pair.
/// Source  docs/theory/recurrent.md; Alemohammad et al., "The Recurrent Neural Tangent Kernel", ICLR 2021
///         (arXiv:2006.10246), section 3; Yang, "Tensor Programs II" (arXiv:2006.14548).
[[nodiscard]] Layer recurrent(const RecurrentOptions& options = {});

}  // namespace widelimit::layers
