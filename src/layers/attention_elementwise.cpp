#include <optional>
#include <vector>

#include "layers/attention_stages.hpp"
#include "layers/common/seen_positions.hpp"
#include "layers/dual_attention.hpp"
#include "layers/dual_rows.hpp"
#include "layers/elementwise_adjoint.hpp"
#include "layers/rotary_table.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::layers {
namespace {

/// The sums of docs/theory/attention.md, section 3.1, entry by entry. E and D are the dual activation of the logits
/// and its derivative. The logits' variances are qk^2 K~_aa K~_ii and qk^2 K~_bb K~_jj, and their covariance is qk^2
/// K~_ab K~_ij, where the variances of the biases of queries and keys are added to the first and the second factor.
/// With rotary positions rho((i - a) - (j - b)) K~_ij stands for K~_ij, and likewise for T~_ij (section 3.5).
///
/// The state of an input has its encoded variances K~_aa.
class ElementwiseAttention final : public DualAttention<ElementwiseAttention> {
 public:
  using DualAttention::DualAttention;

  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(position_count(input));
  }

  /// A dual activation and its products, for every wanted entry (a, b) and every entry (i, j) of the input.
  double flops(const PairSize& pair) const override {
    return pair.wanted_entries() * pair.entries() * (flops_per_dual + 4 * pair.kernels());
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    write_encoded_variances(input, state);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const EncodedPair encoded = encode_with_variances(pair);
    const auto left = logit_variances(pair.left_state, pair.nngp.rows());
    const auto right = logit_variances(pair.right_state, pair.nngp.cols());
    Sums sums(*this, encoded, pair.stop);
    for_each_wanted(pair, [&](Index a, Index b) {
      write_entry(sums(left[static_cast<std::size_t>(a)], right[static_cast<std::size_t>(b)], a, b), encoded,
                  a, b, result);
    });
  }

  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const EncodedPair encoded = encode_with_variances(pair);
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const auto left = logit_variances(pair.left_state, d), right = logit_variances(pair.right_state, e);
    auto left_variances = variances(pair.left_state, d), right_variances = variances(pair.right_state, e);
    EncodedPair bars = encoded.zeros();
    ElementwiseAdjoint backward_pass(zeta(), options(), encoded, pair.same_input, pair.stop);
    for_each_wanted(pair, [&](Index a, Index b) {
      // The adjoints of the four sums depend on the adjoint of the entry alone, so that they are known before the
      // sums. The call with empty sums adds nothing to the adjoints of K~_ab and T~_ab; the one after the sums are
      // known does.
      const AttentionSums back = entry_adjoint({}, encoded, a, b, adjoint, bars);
      if (back.values == 0 && back.value_ntks == 0) return;
      const AttentionSums sums =
          backward_pass({left[static_cast<std::size_t>(a)], right[static_cast<std::size_t>(b)],
                         left_variances, right_variances},
                        a, b, back, bars);
      static_cast<void>(entry_adjoint(sums, encoded, a, b, adjoint, bars));
    });
    add_encoded_adjoint(bars, adjoint);
    add_state_adjoint(left_variances.adjoint, adjoint.left_state);
    add_state_adjoint(right_variances.adjoint, adjoint.right_state);
  }

  template <typename Scalar>
  void adjoint_input(const SelfView<Scalar>&, const SelfAdjoint<Scalar>& adjoint) const {
    add_variances_adjoint(adjoint);
  }

 private:
  template <typename Scalar>
  [[nodiscard]] LogitVariances variances(const Scalar* state, Index d) const {
    return {biased_variances(state, d, options().query_bias_variance),
            biased_variances(state, d, options().key_bias_variance)};
  }

  /// For every a the variances qk^2 K~_aa K~_ii, i = 0, 1, ..., prepared for the dual. The product is formed in this
  /// order everywhere, so that an input with itself has a correlation of exactly 1.
  template <typename Scalar>
  std::vector<PreparedVariances> logit_variances(const Scalar* encoded_variances, Index d) const {
    const auto queries = biased_variances(encoded_variances, d, options().query_bias_variance);
    const auto keys = biased_variances(encoded_variances, d, options().key_bias_variance);
    std::vector<PreparedVariances> prepared;
    for (Index a = 0; a < d; ++a)
      prepared.emplace_back(zeta(), (squared_query_key_std() * queries[a]) * keys);
    return prepared;
  }

  /// The four sums for the entries of one pair.
  class Sums {
   public:
    Sums(const ElementwiseAttention& stage, const EncodedPair& encoded, StopRequest stop)
        : qk2_{stage.squared_query_key_std()},
          encoded_{encoded},
          value_logits_{encoded.values.cwiseProduct(encoded.keys)},
          seen_left_(stage.options(), encoded.keys.rows()),
          seen_right_(stage.options(), encoded.keys.cols()),
          stop_{stop},
          duals_(stage.zeta(), encoded.keys.cols()),
          turns_(encoded.keys.cols()),
          turned_(encoded.keys.cols()) {
      if (encoded.logit_ntks.size() > 0) value_logit_ntks_ = encoded.values.cwiseProduct(encoded.logit_ntks);
      if (stage.options().sequence.rotary)
        rho_.emplace(*stage.options().sequence.rotary, 2 * (encoded.keys.rows() + encoded.keys.cols()));
    }

    AttentionSums operator()(const PreparedVariances& left, const PreparedVariances& right, Index a,
                             Index b) {
      const Index e = encoded_.keys.cols();
      AttentionSums sums;
      // A row i of duals, with all j, is one call of the row kernel.
      for (const PositionRange& seen : seen_left_.of(a))
        for (Index i = seen.begin; i < seen.end; ++i) {
          stop_.check();
          duals_.select(left, right, e, i * e);
          duals_.compute(qk2_ * encoded_.queries(a, b), turned_logits(i, a, b));
          for (const PositionRange& range : seen_right_.of(b)) add(i, range, sums);
        }
      return sums;
    }

   private:
    /// Row i of K~, multiplied by rho((i - a) - (j - b)) with rotary positions.
    const double* turned_logits(Index i, Index a, Index b) {
      const double* row = encoded_.keys.row(i).data();
      if (!rho_) return row;
      for (Index j = 0; j < turns_.size(); ++j) {
        turns_[j] = (*rho_)((i - a) - (j - b));
        turned_[j] = row[j] * turns_[j];
      }
      return turned_.data();
    }

    void add(Index i, const PositionRange& range, AttentionSums& sums) const {
      const Index begin = range.begin, count = range.end - range.begin;
      const auto part = [&](const Matrix<double>& matrix) { return matrix.row(i).segment(begin, count); };
      const auto values = duals_.values().segment(begin, count);
      sums.values += part(encoded_.values).dot(values);
      if (value_logit_ntks_.size() == 0) return;
      sums.value_ntks += part(encoded_.value_ntks).dot(values);
      const auto add_slopes = [&](const auto& derivatives) {
        sums.value_logits += part(value_logits_).dot(derivatives);
        sums.value_logit_ntks += part(value_logit_ntks_).dot(derivatives);
      };
      // K~_ij and T~_ij have rho as a factor in both sums with D.
      const auto derivatives = duals_.derivatives().segment(begin, count);
      if (rho_)
        add_slopes(derivatives.cwiseProduct(turns_.segment(begin, count)));
      else
        add_slopes(derivatives);
    }

    double qk2_;
    const EncodedPair& encoded_;
    Matrix<double> value_logits_;
    Matrix<double> value_logit_ntks_;
    SeenPositions seen_left_;
    SeenPositions seen_right_;
    std::optional<RotaryTable> rho_;
    StopRequest stop_;
    // Buffers for one row at a time.
    DualRows duals_;
    Vector<double> turns_;
    Vector<double> turned_;
  };
};

}  // namespace

std::shared_ptr<const PairStage> make_elementwise_attention(const AttentionOptions& options) {
  return std::make_shared<ElementwiseAttention>(options);
}

}  // namespace widelimit::layers
