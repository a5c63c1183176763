#include <algorithm>
#include <vector>

#include "layers/attention_stage.hpp"
#include "layers/attention_stages.hpp"
#include "layers/rotary_table.hpp"
#include "layers/seen_positions.hpp"

namespace widelimit::layers {
namespace {

/// Sums over rectangles of a matrix, from sums over everything in front of an entry.
class RectangleSums {
 public:
  explicit RectangleSums(const Matrix<double>& matrix)
      : sums_{Matrix<double>::Zero(matrix.rows() + 1, matrix.cols() + 1)} {
    sums_.bottomRightCorner(matrix.rows(), matrix.cols()) = matrix;
    for (Index i = 1; i < sums_.rows(); ++i) sums_.row(i) += sums_.row(i - 1);
    for (Index j = 1; j < sums_.cols(); ++j) sums_.col(j) += sums_.col(j - 1);
  }

  /// The sum over all rows of one list of ranges and all columns of another.
  [[nodiscard]] double over(const std::vector<PositionRange>& rows,
                            const std::vector<PositionRange>& columns) const {
    double sum = 0;
    for (const PositionRange& i : rows)
      for (const PositionRange& j : columns)
        sum += sums_(i.end, j.end) - sums_(i.begin, j.end) - sums_(i.end, j.begin) + sums_(i.begin, j.begin);
    return sum;
  }

 private:
  Matrix<double> sums_;
};

/// The weights are the Gaussian logits themselves: E = qk^2 K~_ab K~_ij and D = 1, so that all sums are over
/// products of two covariances, over all (i, j) or those that a and b see; with rotary positions both are
/// multiplied by rho((i - a) - (j - b)).
class IdentityAttention final : public AttentionStage<IdentityAttention> {
 public:
  using AttentionStage::AttentionStage;

  /// Three products of covariances with the NTK, one without, and their sums; rotary positions: for every diagonal.
  double flops(const PairSize& pair) const override {
    if (options().sequence.rotary)
      return (pair.with_ntk ? 3 : 1) * 4 * pair.entries() * static_cast<double>(pair.left + pair.right);
    return (pair.with_ntk ? 6 : 2) * pair.entries() + 10 * pair.kernels() * pair.wanted_entries();
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const EncodedPair encoded = encode(pair);
    const bool with_ntk = pair.ntk.size() > 0;
    const Matrix<double> value_logits = seen_sums(pair, encoded.values, encoded.keys);
    Matrix<double> value_ntks, value_logit_ntks;
    if (with_ntk) {
      value_ntks = seen_sums(pair, encoded.value_ntks, encoded.keys);
      value_logit_ntks = seen_sums(pair, encoded.values, encoded.logit_ntks);
    }
    const double qk2 = options().query_key_std * options().query_key_std;
    for_each_wanted(pair, [&](Index a, Index b) {
      const double weight = qk2 * encoded.queries(a, b);
      AttentionSums sums{.values = weight * value_logits(a, b), .value_logits = value_logits(a, b)};
      if (with_ntk) {
        sums.value_ntks = weight * value_ntks(a, b);
        sums.value_logit_ntks = value_logit_ntks(a, b);
      }
      write_entry(sums, encoded, a, b, result);
    });
  }

 private:
  /// For every wanted (a, b) the sum of left o right, times rho with rotary positions, over what a and b see.
  template <typename Scalar>
  [[nodiscard]] Matrix<double> seen_sums(const PairView<Scalar>& pair, const Matrix<double>& left,
                                         const Matrix<double>& right) const {
    const Matrix<double> products = left.cwiseProduct(right);
    if (options().sequence.rotary) return turned_sums(pair, products);
    const Index d = products.rows(), e = products.cols();
    if (sees_everything(options())) return Matrix<double>::Constant(d, e, products.sum());
    const SeenPositions rows(options(), d), columns(options(), e);
    const RectangleSums sums(products);
    Matrix<double> result(d, e);
    for_each_wanted(pair, [&](Index a, Index b) { result(a, b) = sums.over(rows.of(a), columns.of(b)); });
    return result;
  }

  /// rho((i - a) - (j - b)) depends on a - b only: one table of sums for every diagonal of the result.
  template <typename Scalar>
  [[nodiscard]] Matrix<double> turned_sums(const PairView<Scalar>& pair,
                                           const Matrix<double>& products) const {
    const Index d = products.rows(), e = products.cols();
    const SeenPositions rows(options(), d), columns(options(), e);
    const RotaryTable rho(*options().sequence.rotary, 2 * (d + e));
    const Index lowest = pair.wanted == Entries::diagonal ? 0 : 1 - e;
    const Index highest = pair.wanted == Entries::diagonal ? 0 : d - 1;
    Matrix<double> result(d, e), turned(d, e);
    for (Index diagonal = lowest; diagonal <= highest; ++diagonal) {
      pair.stop.check();
      for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < e; ++j) turned(i, j) = products(i, j) * rho(i - j - diagonal);
      const RectangleSums sums(turned);
      for (Index a = std::max<Index>(0, diagonal); a < std::min(d, e + diagonal); ++a)
        result(a, a - diagonal) = sums.over(rows.of(a), columns.of(a - diagonal));
    }
    return result;
  }
};

}  // namespace

std::shared_ptr<const PairStage> make_identity_attention(const AttentionOptions& options) {
  return std::make_shared<IdentityAttention>(options);
}

}  // namespace widelimit::layers
