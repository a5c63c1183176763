#pragma once

#include <optional>
#include <string>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/numerics/statistics.hpp"
#include "widelimit/run_control.hpp"

/// Signal propagation through any block of layers, repeated: the kernel recursion of Gram matrices, from the Gram
/// matrix of tokens to that of the tokens after each block, and the same recursion of tangent kernels, which gives
/// the gradients. Attention is computed as the network says (exact for 1/width and for elementwise weights; sampled,
/// with standard errors, for softmax with 1/sqrt(width)), whereas block_map.hpp averages softmax's numerator
/// and denominator separately.
///
/// A block takes n tokens, inputs of one spatial axis, and leaves as many, of the same width.
///
/// Errors  ArgumentError for a start that is not square, symmetric (1e-12) and of positive diagonal, or depth < 1;
///         NetworkError for a block that cannot take n tokens or leaves another shape; NumericalError if covariances
///         leave the range of double, naming the layer; Cancelled.
/// Progress  counts blocks, times replicates of sampled layers; layer_gradients(): layers times blocks;
///         collapsed_norm(), whose search has no known length: none.
/// Source  docs/theory/signal-propagation.md, section 11.
namespace widelimit::propagation {

using Eigen::Index;

/// Tokens after a number of blocks. Without sampled layers standard errors are 0.
struct PropagatedTokens {
  Matrix<double> gram;              ///< [n, n]: G = X X^T / width, its mean over replicates.
  numerics::Estimate squared_norm;  ///< Mean of the diagonal, q.
  numerics::Estimate cosine;        ///< Mean cosine of two tokens; NaN for a single token.
  /// Mean product of two tokens over q: the mean cosine if their norms are alike; NaN for a single token.
  numerics::Estimate product_ratio;
  numerics::Estimate log_gradient;  ///< ln E|dX^l / dX^0|_F^2 / (n width).
};

/// At the start and after each block: depth + 1 of them, for a start [n, n]. Cost: depth times a pair of gram() of the
/// block with all its positions, times the replicates of sampled layers, up to 16.
[[nodiscard]] std::vector<PropagatedTokens> propagate(const Network& block, const Matrix<double>& start,
                                                      Index depth, const RunControl& run = {});

/// The same through blocks one after another, each of which may be another one: factors of branches and skips, windows
/// or variances that change with depth. Errors of a block name it, "blocks[3]". Progress counts blocks.
[[nodiscard]] std::vector<PropagatedTokens> propagate(const std::vector<Network>& blocks,
                                                      const Matrix<double>& start,
                                                      const RunControl& run = {});

/// The squared norm that the block leaves unchanged if all n tokens are equal; nothing if norms grow or shrink
/// forever, or if equal tokens do not stay equal (dropout, zero padding, positions in the values). Found by a bracket
/// from 1 on and a root; a norm beyond 1e-30 .. 1e30 counts as none.
[[nodiscard]] std::optional<double> collapsed_norm(const Network& block, Index tokens,
                                                   const RunControl& run = {});

/// Log growth in each block over `depth` blocks from equal tokens.
struct BlockExponents {
  double start_norm = 0;        ///< Squared norm at the start.
  bool at_fixed_point = false;  ///< Whether the block leaves that norm unchanged.
  numerics::Estimate norm;      ///< Growth of squared norms; 0 at a fixed point.
  /// ln(1 + lambda_a): growth of the squared sine of small angles between tokens; -infinity where a block makes all
  /// tokens equal.
  numerics::Estimate angle;
  numerics::Estimate last_angle;  ///< The same in the last block alone, slower if the map is not normal.
  numerics::Estimate gradient;    ///< lambda_g: growth of the squared norm of the Jacobian.
  /// Why angle and last_angle are NaN: equal tokens do not stay equal, so that no point has angles that are small
  /// beside it. Empty where they do.
  std::string no_angles = {};
};

/// From the collapsed fixed point, or from squared norm `start_norm` if given, or from 1 if there is no fixed point.
/// n >= 2. The linearised map of small differences is that of tangent kernels: it holds for blocks whose attention rows
/// sum to 1 (softmax), as at equal tokens a change of such weights changes nothing.
/// Cost: twice propagate().
[[nodiscard]] BlockExponents block_exponents(const Network& block, Index tokens, Index depth,
                                             std::optional<double> start_norm = {},
                                             const RunControl& run = {});

/// The same through blocks one after another, from squared norm `start_norm`: means over all of them.
[[nodiscard]] BlockExponents block_exponents(const std::vector<Network>& blocks, Index tokens,
                                             double start_norm, const RunControl& run = {});

/// The gradients of the parameters of one layer of the block: E|gradient of <X^L, R>|^2 / (n width), R standard normal,
/// in the standard normal parametrisation (or that of the layer).
struct LayerGradients {
  std::string path;                        ///< "layers[0].branches[1].layers[2]"
  std::string kind;                        ///< "dense", "attention", ...
  std::vector<numerics::Estimate> blocks;  ///< For each repetition of the block, the first one first.
  /// For attention also its matrices, each with its biases: "query", "key" ("query and key" if they are tied), "value"
  /// and "output"; empty: the whole layer.
  std::string parameter = {};
};

/// Every layer of the block that has parameters, in their order; after attention without positional encodings its
/// matrices. Cost: depth / 2 times propagate() for each, of attention three times that.
[[nodiscard]] std::vector<LayerGradients> layer_gradients(const Network& block, const Matrix<double>& start,
                                                          Index depth, const RunControl& run = {});

/// The same of blocks one after another, which must have layers of the same kinds at the same places: ArgumentError.
[[nodiscard]] std::vector<LayerGradients> layer_gradients(const std::vector<Network>& blocks,
                                                          const Matrix<double>& start,
                                                          const RunControl& run = {});

}  // namespace widelimit::propagation
