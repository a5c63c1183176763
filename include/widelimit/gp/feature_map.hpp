#pragma once

#include <span>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// A map of the channels of every position, before a network sees them: first, if there are any, monotone functions of
/// single channels, which never leave the range of the training inputs; then nothing, a factor for each channel, or a
/// matrix. Factors say which channels matter (learn_inputs()), functions what is done about tails (choose_network()),
/// and matrices of fewer columns leave channels out.
class FeatureMap {
 public:
  /// Leaves inputs unchanged.
  FeatureMap() = default;

  /// `factors`: [1, channels], one for each channel, or [channels, at most as many], by which every row of channels is
  /// multiplied; empty for none. ArgumentError for other sizes and numbers that are not finite.
  explicit FeatureMap(Matrix<double> factors);

  /// A function for each channel: `knots` [2 k, channels] are k places, ascending but for repetitions of the last one,
  /// and below them k values, between which it is linear; beyond the ends it is constant. ArgumentError for other
  /// sizes, places in another order and numbers that are not finite.
  [[nodiscard]] static FeatureMap through(Matrix<double> knots);

  /// Every channel is cut to its range in these inputs, vectors [n, channels], n >= 1 (ArgumentError). A channel that
  /// does not vary stays the constant that it is there, whatever new inputs say.
  [[nodiscard]] static FeatureMap clipped(const Inputs<double>& x);

  /// Every channel becomes the normal quantiles of the ranks of its numbers in these inputs, equal ones sharing their
  /// middle rank, with the mean and the deviation that the channel had; numbers between two are interpolated. Channels
  /// of two values stay as they are, within their range. At most 1,024 knots a channel. Errors as above.
  [[nodiscard]] static FeatureMap normal_scores(const Inputs<double>& x);

  /// Of so many channels all but these, in their order, as they are. ArgumentError for places that are none, and where
  /// no channel would be left.
  [[nodiscard]] static FeatureMap without(std::span<const Index> left_out, Index channels);

  /// This map, then another. ArgumentError for another number of channels, and if the other one has functions and this
  /// one more than channels that are left out.
  [[nodiscard]] FeatureMap then(const FeatureMap& other) const;

  [[nodiscard]] bool is_identity() const { return factors_.size() == 0 && knots_.size() == 0; }
  /// How many channels inputs must have; 0: any number.
  [[nodiscard]] Index channels() const;
  /// Whether there is a factor for each channel, and no matrix.
  [[nodiscard]] bool is_diagonal() const { return factors_.rows() == 1; }
  /// As the constructor takes them.
  [[nodiscard]] const Matrix<double>& factors() const { return factors_; }
  /// As through() takes them; empty if there are no functions.
  [[nodiscard]] const Matrix<double>& knots() const { return knots_; }

  /// The inputs mapped, with their masks and graphs; sums run in double. ArgumentError for another number of channels.
  template <typename Scalar>
  [[nodiscard]] Inputs<Scalar> apply(const Inputs<Scalar>& x) const;

 private:
  /// The functions of a map behind this one, as functions of this one's channels.
  [[nodiscard]] Matrix<double> knots_before(const Matrix<double>& knots) const;
  [[nodiscard]] Matrix<double> factors_and(const Matrix<double>& next) const;

  Matrix<double> factors_;
  Matrix<double> knots_;
};

}  // namespace widelimit::gp
