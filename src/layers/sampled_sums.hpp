#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "layers/attention_sums.hpp"
#include "layers/rotary_table.hpp"
#include "layers/softmax_control.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit::layers {

/// Sums over draws of the expressions in docs/theory/attention.md, section 3.4, where A and A' are the weights of
/// both sides. The Jacobian of softmax, diag(s) - s s^T, on both sides of a covariance K turns sum V K D into (o is
/// the entrywise product)
///
///     A (V o K) A'^T - A [(V A'^T) o (K A'^T)] - [(A V) o (A K)] A'^T + (A V A'^T) o (A K A'^T).
///
/// With rotary positions this is a sum over waves, in which the weights beside K, and those before V o K, are
/// multiplied by the wave.
class SampledSums {
 public:
  /// The covariances and the waves must outlive the sums.
  SampledSums(const EncodedPair& encoded, const RotaryWaves& waves, Entries wanted, bool with_ntk)
      : encoded_{encoded}, waves_{waves}, wanted_{wanted}, with_ntk_{with_ntk} {
    values_ = Matrix<double>::Zero(encoded.keys.rows(), encoded.keys.cols());
    if (with_ntk) value_ntks_ = value_logits_ = value_logit_ntks_ = values_;
  }

  void add(const Matrix<double>& left, const Matrix<double>& right) {
    const Matrix<double> half = left * encoded_.values;
    add_product(half, right, values_);
    if (!with_ntk_) return;
    add_product(left * encoded_.value_ntks, right, value_ntks_);
    const Matrix<double> other_half = encoded_.values * right.transpose();
    const Matrix<double> whole = half * right.transpose();
    for (std::size_t k = 0; k < waves_.count(); ++k) {
      const Matrix<double> turned_left = waves_.turned(k, left), turned_right = waves_.turned(k, right);
      add_jacobian(turned_left, turned_right, encoded_.keys, half, other_half, whole, value_logits_);
      add_jacobian(turned_left, turned_right, encoded_.logit_ntks, half, other_half, whole,
                   value_logit_ntks_);
    }
  }

  [[nodiscard]] AttentionSums at(Index a, Index b) const {
    if (!with_ntk_) return {.values = values_(a, b)};
    return {values_(a, b), value_ntks_(a, b), value_logits_(a, b), value_logit_ntks_(a, b)};
  }

 private:
  void add_product(const Matrix<double>& half, const Matrix<double>& right, Matrix<double>& target) const {
    if (wanted_ == Entries::all)
      target.noalias() += half * right.transpose();
    else
      for (Index a = 0; a < std::min(target.rows(), target.cols()); ++a)
        target(a, a) += half.row(a).dot(right.row(a));
  }

  void add_jacobian(const Matrix<double>& left, const Matrix<double>& right, const Matrix<double>& covariance,
                    const Matrix<double>& half, const Matrix<double>& other_half, const Matrix<double>& whole,
                    Matrix<double>& target) const {
    const Matrix<double> covariance_half = left * covariance;
    // The first and the third expression end in the same product, with A'^T.
    add_product(left * encoded_.values.cwiseProduct(covariance) - half.cwiseProduct(covariance_half), right,
                target);
    target -= left * other_half.cwiseProduct(covariance * right.transpose());
    target += whole.cwiseProduct(covariance_half * right.transpose());
  }

  const EncodedPair& encoded_;
  const RotaryWaves& waves_;
  Entries wanted_;
  bool with_ntk_;
  Matrix<double> values_;
  Matrix<double> value_ntks_;
  Matrix<double> value_logits_;
  Matrix<double> value_logit_ntks_;
};

/// Sums over half of the draws with a control variate, and the slopes with which each sum follows the control. Slopes
/// are fitted over draws to the entries (a, a), which are always computed.
class ControlledSums {
 public:
  /// `none` are the sums of no draws, `values` is V. Values and control must outlive the sums.
  ControlledSums(SampledSums none, const Matrix<double>& values, Entries wanted,
                 const SoftmaxControl& control)
      : values_{values},
        control_{control},
        wanted_{wanted},
        sums_{std::move(none)},
        controls_{Matrix<double>::Zero(values.rows(), values.cols())},
        entries_(static_cast<std::size_t>(std::min(values.rows(), values.cols()))) {}

  /// Adds a draw: its weights and the control's weights.
  void add(const Matrix<double>& left, const Matrix<double>& right, const Matrix<double>& control_left,
           const Matrix<double>& control_right) {
    ++count_;
    sums_.add(left, right);
    const Matrix<double> half = control_left * values_;
    if (wanted_ == Entries::all) controls_.noalias() += half * control_right.transpose();
    for (std::size_t n = 0; n < entries_.size(); ++n) {
      const auto a = static_cast<Index>(n);
      const double product = half.row(a).dot(control_right.row(a));
      if (wanted_ != Entries::all) controls_(a, a) += product;
      entries_[n].add(sums_.at(a, a), product - control_.expectation(a, a));
    }
  }

  /// The slopes of the four sums. They are 0, which leaves the control out, if the draws do not determine them or are
  /// too few: a slope that is fitted to eight draws still scatters more than the control removes.
  [[nodiscard]] AttentionSums slopes() const {
    AttentionSums slopes;
    for (const auto sum : attention_sums) {
      double products = 0, squares = 0;
      for (const Entry& entry : entries_) {
        products += entry.products.*sum - entry.last.*sum * entry.control / static_cast<double>(count_);
        squares += entry.squares - entry.control * entry.control / static_cast<double>(count_);
      }
      slopes.*sum = count_ >= least_draws && squares > 0 ? products / squares : 0;
    }
    return slopes;
  }

  /// The sums at (a, b), minus the slopes times the control's deviation from its expectation.
  [[nodiscard]] AttentionSums corrected(Index a, Index b, const AttentionSums& slopes) const {
    AttentionSums sums = sums_.at(a, b);
    const double deviation = controls_(a, b) - static_cast<double>(count_) * control_.expectation(a, b);
    for (const auto sum : attention_sums) sums.*sum -= slopes.*sum * deviation;
    return sums;
  }

 private:
  static constexpr std::int64_t least_draws = 16;
  static constexpr std::array attention_sums{&AttentionSums::values, &AttentionSums::value_ntks,
                                             &AttentionSums::value_logits, &AttentionSums::value_logit_ntks};

  /// What the draws so far made of an entry (a, a).
  struct Entry {
    AttentionSums last;      ///< The sums over all draws so far.
    AttentionSums products;  ///< Sums over draws times the control's deviation.
    double control = 0;      ///< The sum of the control's deviations.
    double squares = 0;

    void add(const AttentionSums& sums, double deviation) {
      for (const auto sum : attention_sums) products.*sum += (sums.*sum - last.*sum) * deviation;
      last = sums;
      control += deviation;
      squares += deviation * deviation;
    }
  };

  const Matrix<double>& values_;
  const SoftmaxControl& control_;
  Entries wanted_;
  SampledSums sums_;
  Matrix<double> controls_;
  std::vector<Entry> entries_;
  std::int64_t count_ = 0;
};

}  // namespace widelimit::layers
