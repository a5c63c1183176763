#pragma once

#include <cstdint>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/propagation/parameters.hpp"

namespace widelimit::propagation {

/// Weights of one block, all [d, d]; tokens are rows x, so a weight w acts as x w^T. Also their gradients.
struct BlockWeights {
  Matrix<double> query, key, value;
  std::vector<Matrix<double>> mlp;  ///< mlp_depth + 1 of them.
};

/// What a block keeps from a forward pass for the backward pass; n tokens.
struct BlockTrace {
  struct Branch {
    Matrix<double> normalised;     ///< [n, d]
    Vector<double> inverse_norms;  ///< [n], 1 / |x_i|
  };
  Branch attention, mlp;
  Matrix<double> queries, keys;  ///< [n, d]
  Matrix<double> weights;        ///< [n, n], rows sum to 1
  Matrix<double> averages;       ///< [n, d], weights times normalised tokens
  std::vector<Matrix<double>> preactivations, activations;
};

/// A forward pass, with everything that gradients need. Memory: (5 + 2 mlp_depth) n d + n^2 numbers for each block.
struct ForwardTrace {
  Matrix<double> output;  ///< [n, d]
  std::vector<BlockTrace> blocks;
};

/// Gradient of a scalar with respect to the input tokens, scaled so that deep networks don't overflow: the
/// gradient is e^{log_scale} direction.
struct InputGradient {
  Matrix<double> direction;  ///< [n, d], Frobenius norm 1
  double log_scale = 0;

  /// ln |gradient|^2
  [[nodiscard]] double log_squared_norm() const { return 2 * log_scale; }
  /// e^{log_scale} direction; meaningful while e^{log_scale} is within the range of a double.
  [[nodiscard]] Matrix<double> gradient() const;
};

/// A transformer of finite width of the form given in parameters.hpp, with trainable weights. Double
/// precision; products go to BLAS on as many threads as it is set to.
///
/// Errors  ArgumentError for width < 1, depth < 1, tokens that are not [n, width] or hold a zero row (they
///         can't be normalised), a trace or gradient of another shape.
class FiniteTransformer {
 public:
  /// Random weights; equal (seed, network) give equal weights, and a deeper network begins with the
  /// shallower.
  FiniteTransformer(const Parameters& parameters, Index width, Index depth, AttentionMask mask,
                    std::uint64_t seed, std::uint64_t network = 0);

  [[nodiscard]] Index width() const { return width_; }
  [[nodiscard]] Index depth() const { return static_cast<Index>(blocks_.size()); }
  [[nodiscard]] const std::vector<BlockWeights>& weights() const { return blocks_; }
  std::vector<BlockWeights>& weights() { return blocks_; }

  /// The tokens [n, d] after all blocks.
  [[nodiscard]] Matrix<double> forward(const Matrix<double>& tokens) const;
  /// Output [n, d] of block 0 .. depth - 1 alone.
  [[nodiscard]] Matrix<double> block(Index block, const Matrix<double>& tokens) const;
  /// The same as forward(), keeping what gradients need.
  [[nodiscard]] ForwardTrace traced_forward(const Matrix<double>& tokens) const;

  /// Gradient with respect to the input tokens of <output_gradient, output>. Softmax, normalisation and
  /// nonlinearities are differentiated exactly.
  [[nodiscard]] InputGradient input_gradient(const ForwardTrace& trace,
                                             const Matrix<double>& output_gradient) const;

  /// The same, unscaled, and adds the gradients with respect to the weights to `weight_gradients`.
  [[nodiscard]] Matrix<double> backward(const ForwardTrace& trace, const Matrix<double>& output_gradient,
                                        std::vector<BlockWeights>& weight_gradients) const;

  /// Weights of the same shapes, all 0.
  [[nodiscard]] std::vector<BlockWeights> zero_gradients() const;

 private:
  void require_tokens(const char* where, const Matrix<double>& tokens) const;
  [[nodiscard]] Matrix<double> attention(const BlockWeights& block, const Matrix<double>& tokens,
                                         BlockTrace& trace) const;
  [[nodiscard]] Matrix<double> mlp(const BlockWeights& block, const Matrix<double>& tokens,
                                   BlockTrace& trace) const;
  [[nodiscard]] Matrix<double> attention_backward(const BlockWeights& block, const BlockTrace& trace,
                                                  const Matrix<double>& gradient, BlockWeights* sums) const;
  [[nodiscard]] Matrix<double> mlp_backward(const BlockWeights& block, const BlockTrace& trace,
                                            const Matrix<double>& gradient, BlockWeights* sums) const;

  Parameters parameters_;
  Index width_;
  AttentionMask mask_;
  std::vector<BlockWeights> blocks_;
};

}  // namespace widelimit::propagation
