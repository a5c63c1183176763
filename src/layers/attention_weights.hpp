#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "layers/common/seen_positions.hpp"
#include "numerics/rows/exponential_rows.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"

namespace widelimit::layers {

/// Turns the logits of an input, divided by query_key_std, into attention weights.
class AttentionRows {
 public:
  /// Rows of d positions. Those that have a 0 in `counts` are not seen; all count if it is empty.
  AttentionRows(const AttentionOptions& options, Index d, std::span<const std::uint8_t> counts = {})
      : scale_{options.query_key_std},
        alibi_slope_{options.sequence.alibi_slope},
        adds_one_{options.weights.is_softmax1()},
        zeta_{options.weights.is_softmax() ? nullptr : activation_of(options.weights.nonlinearity())},
        seen_(options, d, counts) {}

  /// Replaces the logits of position a by its weights. Weights of positions that are not seen become 0.
  template <typename Scalar>
  void apply(Scalar* row, Index a) const {
    clear_unseen(row, a);
    if (zeta_)
      apply_elementwise(row, a);
    else
      apply_softmax(row, a);
  }

  /// The backward pass through apply(): `adjoint` has the adjoints of the weights, which are replaced by those of the
  /// logits.
  template <typename Scalar>
  void apply_adjoint(const Scalar* logits, const Scalar* weights, Scalar* adjoint, Index a) const {
    clear_unseen(adjoint, a);
    if (zeta_)
      for_each_seen(a, [&](Index i) {
        const double slope = zeta_->derivative(scale_ * static_cast<double>(logits[i]));
        adjoint[i] *= static_cast<Scalar>(scale_ * slope);
      });
    else
      apply_softmax_adjoint(logits, weights, adjoint, a);
  }

 private:
  template <typename Scalar>
  void clear_unseen(Scalar* row, Index a) const {
    Index behind = 0;
    for (const PositionRange& range : seen_.of(a)) {
      std::fill(row + behind, row + range.begin, Scalar{0});
      behind = range.end;
    }
    std::fill(row + behind, row + seen_.size(), Scalar{0});
  }

  template <typename Body>
  void for_each_seen(Index a, const Body& body) const {
    for (const PositionRange& range : seen_.of(a))
      for (Index i = range.begin; i < range.end; ++i) body(i);
  }

  template <typename Scalar>
  void apply_elementwise(Scalar* row, Index a) const {
    for_each_seen(a, [&](Index i) {
      row[i] = static_cast<Scalar>(zeta_->value(scale_ * static_cast<double>(row[i])));
    });
  }

  /// Differences from the largest entry are taken first and scaled in double. Logits beyond the range of exp(), or
  /// beyond any range, then do no harm.
  template <typename Scalar>
  void apply_softmax(Scalar* row, Index a) const {
    if (seen_.of(a).empty()) return;
    Scalar largest = -std::numeric_limits<Scalar>::infinity();
    for (const PositionRange& range : seen_.of(a)) largest = std::max(largest, largest_of(row, range));
    if (alibi_slope_ == 0 && !adds_one_ && scale_ <= static_cast<double>(std::numeric_limits<Scalar>::max()))
      return apply_plain_softmax(row, largest, a);
    const auto below_largest = [&](Index i) {
      return scale_ * static_cast<double>(row[i] - largest) -
             alibi_slope_ * static_cast<double>(std::abs(a - i));
    };
    // With ALiBi the largest logit is another one after the slope has been subtracted.
    double top = alibi_slope_ == 0 ? 0 : -std::numeric_limits<double>::infinity();
    if (alibi_slope_ != 0) for_each_seen(a, [&](Index i) { top = std::max(top, below_largest(i)); });
    double sum = 0;
    for_each_seen(a, [&](Index i) {
      row[i] = static_cast<Scalar>(std::exp(below_largest(i) - top));
      sum += static_cast<double>(row[i]);
    });
    // The 1 in the denominator of softmax1 is the exponential of a logit 0, relative to the largest logit like all
    // others.
    if (adds_one_) sum += std::exp(-(scale_ * static_cast<double>(largest) + top));
    divide(row, sum, a);
  }

  /// Several maxima side by side, of which the compiler makes vectors; one would wait for itself at every number.
  template <typename Scalar>
  static Scalar largest_of(const Scalar* row, const PositionRange& range) {
    constexpr Index lanes = 16;
    std::array<Scalar, lanes> most{};
    most.fill(-std::numeric_limits<Scalar>::infinity());
    Index i = range.begin;
    for (; i + lanes <= range.end; i += lanes)
      for (Index lane = 0; lane < lanes; ++lane) {
        Scalar& largest = most[static_cast<std::size_t>(lane)];
        largest = std::max(largest, row[i + lane]);
      }
    for (; i < range.end; ++i) most[0] = std::max(most[0], row[i]);
    return *std::max_element(most.begin(), most.end());
  }

  /// The error of a row's sum would be that of all its weights, so that it is added up and divided by in double.
  template <typename Scalar>
  void divide(Scalar* row, double sum, Index a) const {
    const double inverse = 1 / sum;
    for_each_seen(a, [&](Index i) { row[i] = static_cast<Scalar>(static_cast<double>(row[i]) * inverse); });
  }

  template <typename Scalar>
  void apply_plain_softmax(Scalar* row, Scalar largest, Index a) const {
    // So many numbers are summed in lanes of the row's type.
    constexpr std::size_t numbers_at_once = 64;
    double sum = 0;
    for (const PositionRange& range : seen_.of(a)) {
      const auto size = static_cast<std::size_t>(range.end - range.begin);
      numerics::exponential_rows<Scalar>().decay(static_cast<Scalar>(scale_), largest, row + range.begin,
                                                 size);
      for (std::size_t i = 0; i < size; i += numbers_at_once)
        sum +=
            numerics::linear_rows<Scalar>().sum(row + range.begin + i, std::min(numbers_at_once, size - i));
    }
    divide(row, sum, a);
  }

  /// The Jacobian is diag(s) - s s^T, with or without a 1 in the denominator. Adjoints are taken relative to that of
  /// the largest weight. With logits of 1e10, the rounding of weights whose sum is not quite 1 would otherwise make a
  /// derivative where there is none.
  template <typename Scalar>
  void apply_softmax_adjoint(const Scalar* logits, const Scalar* weights, Scalar* adjoint, Index a) const {
    if (seen_.of(a).empty()) return;
    Index top = seen_.of(a).front().begin;
    for_each_seen(a, [&](Index i) { top = weights[i] > weights[top] ? i : top; });
    // The logit 0 of softmax1 is a constant, so its own adjoint is 0; its weight matters to the mean.
    const double zero_weight = adds_one_ ? weight_of_zero(logits, weights, top, a) : 0;
    const double origin =
        zero_weight > static_cast<double>(weights[top]) ? 0 : static_cast<double>(adjoint[top]);
    double mean = zero_weight * -origin, sum = zero_weight;
    for_each_seen(a, [&](Index i) {
      mean += static_cast<double>(weights[i]) * (static_cast<double>(adjoint[i]) - origin);
      sum += static_cast<double>(weights[i]);
    });
    mean /= sum;
    for_each_seen(a, [&](Index i) {
      adjoint[i] = static_cast<Scalar>(scale_ * static_cast<double>(weights[i]) *
                                       ((static_cast<double>(adjoint[i]) - origin) - mean));
    });
  }

  /// The weight of the logit 0 of softmax1. It is 1 if all others have vanished.
  template <typename Scalar>
  double weight_of_zero(const Scalar* logits, const Scalar* weights, Index top, Index a) const {
    if (!(weights[top] > 0)) return 1;
    const double logit =
        scale_ * static_cast<double>(logits[top]) - alibi_slope_ * static_cast<double>(std::abs(a - top));
    return std::min(1.0, static_cast<double>(weights[top]) * std::exp(-logit));
  }

  double scale_;
  double alibi_slope_;
  bool adds_one_;
  numerics::ActivationPtr zeta_;  ///< Null for softmax.
  SeenPositions seen_;
};

}  // namespace widelimit::layers
