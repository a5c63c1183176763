#include "layers/attention_stage.hpp"
#include "layers/attention_stages.hpp"
#include "layers/attention_weights.hpp"
#include "layers/dual_rows.hpp"
#include "widelimit/layers/activations.hpp"

namespace widelimit::layers {
namespace {

/// The sums of docs/theory/attention.md, section 3.1, entry by entry: E and D are the dual activation of the
/// logits, whose variances are qk^2 K~_aa K~_ii and qk^2 K~_bb K~_jj and whose covariance is qk^2 K~_ab
/// K~_ij.
class ElementwiseAttention final : public AttentionStage<ElementwiseAttention> {
 public:
  explicit ElementwiseAttention(const AttentionOptions& options)
      : AttentionStage(options), zeta_{activation_of(options.weights.nonlinearity())} {}

  std::size_t state_size(const Shape& input) const override {
    return static_cast<std::size_t>(position_count(input));
  }

  /// A dual activation and its products for every wanted entry and every entry of the input.
  double flops(const PairSize& pair) const override {
    return pair.wanted_entries() * pair.entries() * (flops_per_dual + 4 * pair.kernels());
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    write_encoded_variances(input, state);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const EncodedPair encoded = encode(pair);
    const auto left = logit_variances(pair.left_state, pair.nngp.rows());
    const auto right = logit_variances(pair.right_state, pair.nngp.cols());
    const Matrix<double> value_logits = encoded.values.cwiseProduct(encoded.logits);
    Matrix<double> value_logit_ntks;
    if (pair.ntk.size() > 0) value_logit_ntks = encoded.values.cwiseProduct(encoded.logit_ntks);
    DualRows rows(*zeta_, pair.nngp.cols());
    for_each_wanted(pair, [&](Index a, Index b) {
      const auto sums =
          sum_visible(encoded, value_logits, value_logit_ntks, left[static_cast<std::size_t>(a)],
                      right[static_cast<std::size_t>(b)], a, b, rows, pair.stop);
      write_entry(sums, encoded, a, b, result);
    });
  }

 private:
  /// The prepared variances qk^2 K~_aa K~_ii, i = 0.., of every a. The product is formed in this order
  /// everywhere, so that an input with itself has correlation exactly 1.
  template <typename Scalar>
  std::vector<PreparedVariances> logit_variances(const Scalar* encoded_variances, Index d) const {
    const Vector<double> variances =
        Eigen::Map<const Vector<Scalar>>(encoded_variances, d).template cast<double>();
    std::vector<PreparedVariances> prepared;
    for (Index a = 0; a < d; ++a) prepared.emplace_back(*zeta_, (qk2() * variances[a]) * variances);
    return prepared;
  }

  AttentionSums sum_visible(const EncodedPair& encoded, const Matrix<double>& value_logits,
                            const Matrix<double>& value_logit_ntks, const PreparedVariances& left,
                            const PreparedVariances& right, Index a, Index b, DualRows& rows,
                            const StopRequest& stop) const {
    const Index d = encoded.logits.rows(), e = encoded.logits.cols();
    const Index seen_right = visible_positions(options().mask, b, e);
    AttentionSums sums;
    for (Index i = 0; i < visible_positions(options().mask, a, d); ++i) {
      stop.check();
      rows.select(left, right, e, i * e);
      rows.compute(qk2() * encoded.logits(a, b), encoded.logits.row(i).data());
      const auto values = rows.values().head(seen_right), derivatives = rows.derivatives().head(seen_right);
      sums.values += encoded.values.row(i).head(seen_right).dot(values);
      if (value_logit_ntks.size() == 0) continue;
      sums.value_ntks += encoded.value_ntks.row(i).head(seen_right).dot(values);
      sums.value_logits += value_logits.row(i).head(seen_right).dot(derivatives);
      sums.value_logit_ntks += value_logit_ntks.row(i).head(seen_right).dot(derivatives);
    }
    return sums;
  }

  [[nodiscard]] double qk2() const { return options().query_key_std * options().query_key_std; }

  numerics::ActivationPtr zeta_;
};

}  // namespace

std::shared_ptr<const PairStage> make_elementwise_attention(const AttentionOptions& options) {
  return std::make_shared<ElementwiseAttention>(options);
}

}  // namespace widelimit::layers
