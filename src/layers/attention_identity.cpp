#include "layers/attention_stage.hpp"
#include "layers/attention_stages.hpp"

namespace widelimit::layers {
namespace {

/// Sums over i <= a, j <= b of a matrix, for all (a, b).
Matrix<double> prefix_sums(Matrix<double> matrix) {
  for (Index i = 1; i < matrix.rows(); ++i) matrix.row(i) += matrix.row(i - 1);
  for (Index j = 1; j < matrix.cols(); ++j) matrix.col(j) += matrix.col(j - 1);
  return matrix;
}

/// The weights are the Gaussian logits themselves: E = qk^2 K~_ab K~_ij and D = 1, so that all sums are over
/// products of two covariances, over all (i, j) or those that a and b see.
class IdentityAttention final : public AttentionStage<IdentityAttention> {
 public:
  using AttentionStage::AttentionStage;

  /// Three products of covariances with the NTK, one without, and their sums.
  double flops(const PairSize& pair) const override {
    return (pair.with_ntk ? 6 : 2) * pair.entries() + 10 * pair.kernels() * pair.wanted_entries();
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const EncodedPair encoded = encode(pair);
    const bool with_ntk = pair.ntk.size() > 0;
    const Matrix<double> value_logits = visible_sums(encoded.values, encoded.logits);
    Matrix<double> value_ntks, value_logit_ntks;
    if (with_ntk) {
      value_ntks = visible_sums(encoded.value_ntks, encoded.logits);
      value_logit_ntks = visible_sums(encoded.values, encoded.logit_ntks);
    }
    const double qk2 = options().query_key_std * options().query_key_std;
    for_each_wanted(pair, [&](Index a, Index b) {
      const double weight = qk2 * encoded.logits(a, b);
      AttentionSums sums{.values = weight * value_logits(a, b), .value_logits = value_logits(a, b)};
      if (with_ntk) {
        sums.value_ntks = weight * value_ntks(a, b);
        sums.value_logit_ntks = value_logit_ntks(a, b);
      }
      write_entry(sums, encoded, a, b, result);
    });
  }

 private:
  [[nodiscard]] Matrix<double> visible_sums(const Matrix<double>& left, const Matrix<double>& right) const {
    const Matrix<double> products = left.cwiseProduct(right);
    if (options().mask == AttentionMask::causal) return prefix_sums(products);
    return Matrix<double>::Constant(products.rows(), products.cols(), products.sum());
  }
};

}  // namespace

std::shared_ptr<const PairStage> make_identity_attention(const AttentionOptions& options) {
  return std::make_shared<IdentityAttention>(options);
}

}  // namespace widelimit::layers
