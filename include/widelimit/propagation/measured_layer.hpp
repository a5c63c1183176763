#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::propagation {

using Eigen::Index;

/// Norms and angles of the tokens in one layer of any model: means over sequences, with their standard
/// errors (NaN for a single sequence).
struct MeasuredLayer {
  numerics::Estimate norm;           ///< Mean squared norm of a sequence's tokens over the width, q.
  numerics::Estimate norm_spread;    ///< Standard deviation of these squared norms over their mean.
  numerics::Estimate largest_share;  ///< Of a sequence's sum of squared norms, that of its longest token.
  Index largest_token = 0;  ///< The position that is the longest in most sequences (the first of several).
  double largest_token_share = 0;  ///< In how many of the sequences it is.
  numerics::Estimate cosine;       ///< Mean cosine of two of its tokens.
  double gap = 0;                  ///< 1 - cosine, without cancellation.
  /// Mean product of two tokens of a sequence over q, the mean squared norm: the mean cosine if all norms are alike,
  /// and if not that of the longest tokens.
  numerics::Estimate product_ratio;
  /// A gap below is made of the rounding of numbers: rounding_gap() of their type, or of one coarser in which all of
  /// them are exact (half-precision activations that were widened).
  double rounding_gap = 0;
  /// [tokens, tokens]: X X^T / width of the tokens that are kept, mean over sequences. Empty where sequences keep
  /// tokens at different positions.
  Matrix<double> gram;

  /// Whether the gap is one, and not rounding.
  [[nodiscard]] bool has_gap() const { return gap >= rounding_gap; }
};

/// What is known of activations besides their numbers.
struct MeasureOptions {
  /// [sequences, tokens], row-major: tokens that are left out may hold anything. Empty: all are kept.
  std::vector<bool> kept = {};
  double epsilon = 0x1p-52;  ///< Distance of 1 from the next number of the type in which they were computed.
};

/// The least 1 - cosine of tokens whose numbers are of this relative precision that says something about them.
/// Networks whose tokens have become equal keep gaps of .2 to 8 epsilon^2 (float16, float32), which is what rounding
/// makes anew in every block; from 32 epsilon^2 on the gaps of networks are within 15 % of those in double.
[[nodiscard]] double rounding_gap(double epsilon);

/// The tokens of activations [sequences, tokens, width], row-major.
/// Errors  ArgumentError for no activations or numbers that do not fill whole sequences, a sequence with fewer than two
///         tokens, and, of tokens that are kept, numbers that are not finite and tokens that are 0, which have no
///         direction; NumericalError if squared norms leave the range of double.
[[nodiscard]] MeasuredLayer measured_layer(std::span<const double> activations, Index sequences, Index tokens,
                                           const MeasureOptions& options = {});

/// Which tokens [sequences, tokens] stand before the lengths. ArgumentError unless there is a length from 2 to `tokens`
/// for each sequence.
[[nodiscard]] std::vector<bool> kept_by_lengths(std::span<const std::int64_t> lengths, Index sequences,
                                                Index tokens);

/// How 1 - cosine grows from layer to layer, as ln.
struct AngleGrowth {
  std::vector<double> layers;  ///< 0 for the first; NaN where one of both gaps is rounding.
  double mean = 0;             ///< Of the blocks that are not NaN; NaN if there is none.
  Index left_out = 0;          ///< Number of blocks that are.
};
/// At least one layer.
[[nodiscard]] AngleGrowth angle_growth(std::span<const MeasuredLayer> layers);

/// Says in how many layers angles are rounding, and in how many blocks they are left out for it; nothing where in none.
[[nodiscard]] std::optional<std::string> rounding_note(std::span<const MeasuredLayer> layers);

}  // namespace widelimit::propagation
