#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <optional>
#include <variant>
#include <vector>

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

/// Whether queries and keys share one weight matrix.
enum class QueryKeyWeights { tied, untied };

/// The function that turns logits into attention weights: softmax over the seen positions, softmax1, or elementwise.
class AttentionWeights {
 public:
  /// Softmax over the positions that are seen, row by row.
  [[nodiscard]] static AttentionWeights softmax() { return {}; }
  /// exp(l_i) / (1 + sum_j exp(l_j)): a row may sum to less than 1, so that a position need not attend to anything.
  [[nodiscard]] static AttentionWeights softmax1();
  /// Any nonlinearity layer, e.g. relu(); ArgumentError for another layer.
  [[nodiscard]] static AttentionWeights elementwise(Layer nonlinearity);

  /// True for softmax and for softmax1.
  [[nodiscard]] bool is_softmax() const { return !nonlinearity_.has_value(); }
  [[nodiscard]] bool is_softmax1() const { return is_softmax() && adds_one_; }
  /// The nonlinearity layer; only when neither softmax nor softmax1.
  [[nodiscard]] const Layer& nonlinearity() const { return *nonlinearity_; }

 private:
  std::optional<Layer> nonlinearity_;
  bool adds_one_ = false;
};

/// Position covariance R = rho where two positions are equal, 0 elsewhere.
struct IdentityPositions {
  double rho = 1;  ///< >= 0
};
/// R = rho exp(-phi r^2); r^2 the squared distance with every axis measured in units of its length (images),
/// or (i/n - j/n')^2 for the 1-based positions i of n and j of n' of two sequences. rho, phi >= 0.
struct StructuredPositions {
  double rho = 1;
  double phi = 1;
};
/// Any d x d position covariance, symmetric positive semidefinite; times rho. Shorter sequences use its
/// leading block; images that are paired have one shape.
struct MatrixPositions {
  Matrix<double> covariance = {};
  double rho = 1;
};

/// R = rho times any function of the distance of two positions, the sum over the axes of |i - j|^power in units of one
/// position. R must be positive semidefinite between the positions of every
/// input, and between those of every pair (NetworkError).
struct DecayPositions {
  std::vector<double> values;  ///< values[r] at distance r, as far as inputs reach, also from one to another.
  double power = 2;            ///< > 0; whole where there are no `distances`
  double rho = 1;              ///< >= 0
  /// Where the values stand, from 0 upwards, one for each; without any they stand at 0, 1, 2, ... A distance of two
  /// positions takes the value of the one that it is up to a relative 1e-9; NetworkError if there is none.
  std::vector<double> distances = {};

  /// decay(0), decay(1), ..., decay(largest). ArgumentError unless 0 <= largest <= 2^20.
  [[nodiscard]] static DecayPositions of(const std::function<double(double)>& decay, Index largest,
                                         Index power = 2);

  /// decay(r) for every distance r between positions of inputs whose axes are no longer than these. ArgumentError
  /// unless the power is positive and finite, and there are at most 2^20 positions.
  [[nodiscard]] static DecayPositions within(const std::function<double(double)>& decay, const Shape& longest,
                                             double power);
};
using PositionCovariance =
    std::variant<IdentityPositions, StructuredPositions, MatrixPositions, DecayPositions>;

/// The meaning of rho of a position covariance, where R_0 is the covariance at rho = 1.
enum class PositionScale {
  variance,  ///< R = rho R_0.
  /// R = rho R_0 / sqrt(s s'), s and s' the mean row sums of R_0 of either input with itself: those of R are rho on
  /// average, whatever the number of positions, so that weights made of R alone average where rho is 1.
  mean_row_sum,
};

/// Where positional encodings enter, besides queries and keys.
enum class ValueEncodings { absent, present };

/// Trainable Gaussian positional encodings: K~ = input_weight K + position_weight R, T~ likewise.
struct PositionalEncodings {
  PositionCovariance covariance = {};
  double input_weight = 1;     ///< w_in >= 0
  double position_weight = 1;  ///< w_pe >= 0
  ValueEncodings values = ValueEncodings::absent;
  PositionScale scale = PositionScale::variance;

  /// Encodings of this variance, added to the input.
  [[nodiscard]] static PositionalEncodings added(PositionCovariance covariance, double variance = 1);
  /// `appended` >= 1 channels of encodings of this variance, after the `channels` >= 1 of the input: ArgumentError for
  /// other numbers. Finite networks have encodings of the same covariance instead, added to all channels.
  [[nodiscard]] static PositionalEncodings appended(PositionCovariance covariance, Index channels,
                                                    Index appended, double variance = 1);
};

/// Rotary positions: at position a of a sequence, counted from 0, the i-th pair of a head's query and key channels is
/// turned by a frequencies[i] radians, so that logits depend on the distance of positions. Only the mean over the
/// frequencies matters, rho(r) = mean_i cos(r frequencies[i]).
struct RotaryPositions {
  std::vector<double> frequencies;  ///< At least one; within -1e6 .. 1e6.

  /// base^(-i / pairs), i < pairs. ArgumentError unless base > 0 and 1 <= pairs <= 65536.
  [[nodiscard]] static RotaryPositions with_base(double base, Index pairs);
};

/// Options for attention over sequences, inputs with one axis. Distances are in units of one position.
struct SequenceAttention {
  std::optional<RotaryPositions> rotary = {};  ///< Logits times rho(c - a), see above.
  /// ALiBi, m >= 0: softmax weights at position a see the logit of position c minus m |a - c|.
  double alibi_slope = 0;
  std::optional<Index> window = {};  ///< >= 1: position a sees c only if |a - c| < window.
  Index prefix = 0;  ///< With AttentionMask::causal: the first `prefix` >= 0 positions are seen by all.
  /// Square: position a sees c only where (a, c) is true, as far as the other masks allow. Shorter sequences use the
  /// leading block. Under softmax every position must see at least one.
  std::optional<Matrix<bool>> mask_matrix = {};
};

/// All options of attention(); the defaults are softmax attention with tied weights in the 1/width scaling.
struct AttentionOptions {
  AttentionScaling scaling = AttentionScaling::inverse_width;
  AttentionWeights weights = AttentionWeights::softmax();
  double query_key_std = 1;          ///< sigma_Q sigma_K >= 0; softmax at temperature 1 / query_key_std.
  double output_value_variance = 1;  ///< (sigma_O sigma_V)^2 >= 0
  double bias_variance = 0;          ///< >= 0
  /// Biases of queries and keys, >= 0, for weights of variance 1: they see K~ + query_bias_variance and K~ +
  /// key_bias_variance, and query_key_std multiplies logits. Tied weights share their biases: both are equal.
  double query_bias_variance = 0;
  double key_bias_variance = 0;
  /// Absent: tied for inverse_width, untied for inverse_sqrt_width. Untied weights with inverse_width are
  /// allowed for softmax only, which then averages over all positions.
  std::optional<QueryKeyWeights> query_key_weights = {};
  AttentionMask mask = AttentionMask::full;
  std::optional<PositionalEncodings> positions = {};
  std::int64_t samples = 2048;  ///< Softmax with inverse_sqrt_width only: Monte-Carlo draws.
  std::uint64_t seed = 0;       ///< Softmax with inverse_sqrt_width only.
  SequenceAttention sequence = {};
};

/// Multi-head self-attention with infinitely many heads. Needs positions; output channels are Gaussian.
///
/// Errors  ArgumentError for options out of range or that do not fit each other; NetworkError if inputs do not fit
///         them.
///
/// Cost    inverse_width: two d x d x d' products for each pair for the NNGP, four with the NTK; one for both before
///         flatten, none before global pooling. inverse_sqrt_width: see docs/layers.md.
///
/// Source  Hron, Bahri, Sohl-Dickstein, Novak, "Infinite attention", ICML 2020, arXiv:2006.10540; rotary positions: Su
///         et al. 2021, arXiv:2104.09864; ALiBi: Press et al. 2021, arXiv:2108.12409; equations of all options:
///         docs/theory/attention.md.
[[nodiscard]] Layer attention(const AttentionOptions& options = {});

}  // namespace widelimit::layers
