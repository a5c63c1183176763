#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "layers/attention_sums.hpp"
#include "layers/common/seen_positions.hpp"
#include "layers/dual_rows.hpp"
#include "layers/rotary_table.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::layers {

/// The variances of the queries and of the keys of one input, and the adjoint of the encoded variances of which both
/// are made.
struct LogitVariances {
  Vector<double> queries;
  Vector<double> keys;
  Vector<double> adjoint = Vector<double>::Zero(queries.size());

  /// Adds the adjoint of the variance qk2 queries[a] keys[i] of a logit.
  void add(Index a, Index i, double qk2, double bar) {
    adjoint[a] += qk2 * keys[i] * bar;
    adjoint[i] += qk2 * queries[a] * bar;
  }
};

/// The backward pass through the sums of attention with elementwise weights (docs/theory/attention.md, section 3.1),
/// one entry (a, b) at a time. Let s_1 .. s_4 be the adjoints of the sums, in the order of AttentionSums, and r =
/// rho((i - a) - (j - b)) with rotary positions, 1 otherwise. Then
///
///     E-bar = s_1 V + s_2 T_V,   D-bar = r V (s_3 K~ + s_4 T~).
///
/// Activation::apply_adjoint() passes these on to the variances p and q and the covariance c = qk^2 K~_ab r K~_ij of
/// the logits.
class ElementwiseAdjoint {
 public:
  ElementwiseAdjoint(const numerics::Activation& zeta, const AttentionOptions& options,
                     const EncodedPair& encoded, bool same_input, StopRequest stop)
      : zeta_{zeta},
        qk2_{options.query_key_std * options.query_key_std},
        encoded_{encoded},
        same_input_{same_input},
        seen_left_(options, encoded.keys.rows()),
        seen_right_(options, encoded.keys.cols()),
        stop_{stop},
        duals_(zeta, encoded.keys.cols()),
        row_(encoded.keys.cols()) {
    if (options.sequence.rotary)
      rho_.emplace(*options.sequence.rotary, 2 * (encoded.keys.rows() + encoded.keys.cols()));
  }

  /// The logits of position a and of position b: their prepared variances, the variances of which these are products,
  /// and the adjoints to which is added.
  struct Sides {
    const PreparedVariances& prepared_left;
    const PreparedVariances& prepared_right;
    LogitVariances& left;
    LogitVariances& right;
  };

  /// Passes backward from the adjoints `back` of the sums at (a, b). Adds to the adjoints of the sides and to `bars`.
  /// Returns the sums with D, which the adjoints of K~_ab and T~_ab need.
  AttentionSums operator()(const Sides& sides, Index a, Index b, const AttentionSums& back,
                           EncodedPair& bars) {
    AttentionSums sums;
    row_.mask.setZero();
    for (const PositionRange& range : seen_right_.of(b))
      row_.mask.segment(range.begin, range.end - range.begin).setOnes();
    for (const PositionRange& seen : seen_left_.of(a))
      for (Index i = seen.begin; i < seen.end; ++i) {
        stop_.check();
        evaluate(sides, a, b, i);
        add_direct(i, back, bars, sums);
        backward_pass(sides, a, b, i);
        add_logits(sides, a, b, i, bars);
      }
    return sums;
  }

 private:
  /// Row i of the logits of (a, b), with all j, and its adjoints.
  struct Row {
    explicit Row(Index size)
        : mask(size),
          turns(Array::Ones(size)),
          covariances(size),
          p(size),
          q(size),
          values(size),
          derivatives(size),
          p_bar(size),
          q_bar(size),
          ones(Array::Ones(size)) {}
    using Array = Eigen::Array<double, 1, Eigen::Dynamic>;
    Array mask;         ///< 1 where b sees j.
    Array turns;        ///< r
    Array covariances;  ///< c
    Array p, q;
    Array values, derivatives;  ///< E-bar and D-bar; then the adjoint of c, and one that is not used.
    Array p_bar, q_bar;
    Array ones;
  };

  [[nodiscard]] bool with_ntk() const { return encoded_.logit_ntks.size() > 0; }

  void evaluate(const Sides& sides, Index a, Index b, Index i) {
    const Index e = row_.mask.size();
    if (rho_)
      for (Index j = 0; j < e; ++j) row_.turns[j] = (*rho_)((i - a) - (j - b));
    row_.covariances = row_.turns * encoded_.keys.row(i).array();
    duals_.select(sides.prepared_left, sides.prepared_right, e, i * e);
    duals_.compute(qk2_ * encoded_.queries(a, b), row_.covariances.data());
    row_.covariances *= qk2_ * encoded_.queries(a, b);
    row_.p.setConstant(qk2_ * sides.left.queries[a] * sides.left.keys[i]);
    row_.q = qk2_ * sides.right.queries[b] * sides.right.keys.transpose().array();
  }

  /// Passes through the sums to V, T_V, K~ and T~, which multiply E and D, and to E and D themselves.
  void add_direct(Index i, const AttentionSums& back, EncodedPair& bars, AttentionSums& sums) {
    const auto values = encoded_.values.row(i).array();
    const auto duals = row_.mask * duals_.values().transpose().array();
    row_.values = row_.mask * back.values * values;
    bars.values.row(i).array() += back.values * duals;
    if (!with_ntk()) return;
    const auto value_ntks = encoded_.value_ntks.row(i).array(), logits = encoded_.keys.row(i).array(),
               logit_ntks = encoded_.logit_ntks.row(i).array();
    const auto slopes = row_.mask * row_.turns * duals_.derivatives().transpose().array();
    const auto of_logits = back.value_logits * logits + back.value_logit_ntks * logit_ntks;
    row_.values += row_.mask * back.value_ntks * value_ntks;
    row_.derivatives = row_.mask * row_.turns * values * of_logits;
    bars.values.row(i).array() += slopes * of_logits;
    bars.value_ntks.row(i).array() += back.value_ntks * duals;
    bars.keys.row(i).array() += back.value_logits * values * slopes;
    bars.logit_ntks.row(i).array() += back.value_logit_ntks * values * slopes;
    sums.value_logits += (values * logits * slopes).sum();
    sums.value_logit_ntks += (values * logit_ntks * slopes).sum();
  }

  /// Passes through E and D to the variances and covariances of the logits.
  void backward_pass(const Sides& sides, Index a, Index b, Index i) {
    const bool is_variance = same_input_ && a == b && row_.mask[i] != 0;
    double variance_bar = 0;
    if (is_variance) {
      // The logit (a, i) of an input with itself: variances and covariance are one number, whose total slope goes to
      // the variance.
      const auto slopes = zeta_.self_slopes(row_.p[i]);
      variance_bar = row_.values[i] * slopes.slope.value;
      if (with_ntk()) variance_bar += row_.derivatives[i] * slopes.slope.derivative;
    }
    duals_.backward_pass({row_.covariances.data(), with_ntk() ? row_.ones.data() : nullptr, row_.p.data(),
                          row_.q.data(), nullptr, nullptr, row_.values.data(),
                          with_ntk() ? row_.derivatives.data() : nullptr, row_.p_bar.data(),
                          row_.q_bar.data(), static_cast<std::size_t>(row_.p.size())});
    if (!is_variance) return;
    row_.values[i] = row_.q_bar[i] = row_.p_bar[i] = 0;
    sides.left.add(a, i, qk2_, variance_bar);
  }

  /// Passes on to K~ and to the variances of queries and keys. The covariance is a product of K~_ab and K~_ij, each
  /// of which receives the other.
  void add_logits(const Sides& sides, Index a, Index b, Index i, EncodedPair& bars) {
    const auto turned = row_.turns * row_.values;
    bars.keys.row(i).array() += qk2_ * encoded_.queries(a, b) * turned;
    bars.queries(a, b) += qk2_ * (encoded_.keys.row(i).array() * turned).sum();
    sides.left.add(a, i, qk2_, row_.p_bar.sum());
    for (Index j = 0; j < row_.q_bar.size(); ++j) sides.right.add(b, j, qk2_, row_.q_bar[j]);
  }

  const numerics::Activation& zeta_;
  double qk2_;
  const EncodedPair& encoded_;
  bool same_input_;
  SeenPositions seen_left_;
  SeenPositions seen_right_;
  std::optional<RotaryTable> rho_;
  StopRequest stop_;
  DualRows duals_;
  Row row_;
};

}  // namespace widelimit::layers
