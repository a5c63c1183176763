#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <optional>
#include <variant>

#include "widelimit/attention_mask.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// How query-key products are scaled as the key width grows.
enum class AttentionScaling {
  inverse_width,       ///< 1/width: the attention weights become deterministic (tied query and key weights).
  inverse_sqrt_width,  ///< 1/sqrt(width): the logits stay Gaussian (independent query and key weights).
};

/// Whether query and key weights are one and the same matrix.
enum class QueryKeyWeights { tied, untied };

/// The function that turns logits into attention weights: softmax over the seen positions, or elementwise.
class AttentionWeights {
 public:
  /// Softmax over the positions that are seen, row by row.
  [[nodiscard]] static AttentionWeights softmax() { return {}; }
  /// Any nonlinearity layer, e.g. relu(); ArgumentError for another layer.
  [[nodiscard]] static AttentionWeights elementwise(Layer nonlinearity);

  [[nodiscard]] bool is_softmax() const { return !nonlinearity_.has_value(); }
  /// The nonlinearity layer; only when not softmax.
  [[nodiscard]] const Layer& nonlinearity() const { return *nonlinearity_; }

 private:
  std::optional<Layer> nonlinearity_;
};

/// Position covariance R = rho where two positions are equal, 0 elsewhere.
struct IdentityPositions {
  double rho = 1;  ///< >= 0
};
/// R = rho exp(-phi r^2); r^2 the squared distance with every axis measured in units of its length (images),
/// or |i/n - j/n'| for the 1-based positions i of n and j of n' of two sequences. rho, phi >= 0.
struct StructuredPositions {
  double rho = 1;
  double phi = 1;
};
/// Any d x d position covariance, symmetric positive semidefinite; times rho. Shorter sequences use its
/// leading block.
struct MatrixPositions {
  Matrix<double> covariance = {};
  double rho = 1;
};

/// Where positional encodings enter besides queries and keys.
enum class ValueEncodings { absent, present };

/// Trainable Gaussian positional encodings: K~ = input_weight K + position_weight R, T~ likewise.
struct PositionalEncodings {
  std::variant<IdentityPositions, StructuredPositions, MatrixPositions> covariance = {};
  double input_weight = 1;     ///< w_in >= 0
  double position_weight = 1;  ///< w_pe >= 0
  ValueEncodings values = ValueEncodings::absent;
};

struct AttentionOptions {
  AttentionScaling scaling = AttentionScaling::inverse_width;
  AttentionWeights weights = AttentionWeights::softmax();
  double query_key_std = 1;          ///< sigma_Q sigma_K >= 0
  double output_value_variance = 1;  ///< (sigma_O sigma_V)^2 >= 0
  double bias_variance = 0;          ///< >= 0
  /// Absent: tied for inverse_width, untied for inverse_sqrt_width. Untied weights with inverse_width are
  /// allowed for softmax only, which then averages over all positions.
  std::optional<QueryKeyWeights> query_key_weights = {};
  AttentionMask mask = AttentionMask::full;
  std::optional<PositionalEncodings> positions = {};
  std::int64_t samples = 2048;  ///< Softmax with inverse_sqrt_width only: Monte-Carlo draws.
  std::uint64_t seed = 0;       ///< The same.
};

/// Multi-head self-attention with infinitely many heads. Needs positions; output channels are Gaussian.
///
/// Errors  ArgumentError for options out of range or that do not fit each other.
///
/// Cost    inverse_width: two d x d x d' products a pair for the NNGP, four with the NTK; one for both before
///         flatten, none before global pooling. inverse_sqrt_width: see docs/layers.md.
///
/// Source  Hron, Bahri, Sohl-Dickstein, Novak, "Infinite attention", ICML 2020, arXiv:2006.10540; equations of all
///         options: docs/theory/attention.md.
[[nodiscard]] Layer attention(const AttentionOptions& options = {});

}  // namespace widelimit::layers
