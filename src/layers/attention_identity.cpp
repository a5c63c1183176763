#include <algorithm>
#include <vector>

#include "layers/attention_stages.hpp"
#include "layers/common/seen_positions.hpp"
#include "layers/dual_attention.hpp"
#include "layers/rotary_table.hpp"

namespace widelimit::layers {
namespace {

/// Sums over rectangles of a matrix, from a table of the sums over everything before an entry (summed-area table). A
/// rectangle costs four numbers, whatever its size.
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

/// The transpose of RectangleSums: adds numbers to rectangles by their four corners.
class RectangleSpread {
 public:
  RectangleSpread(Index rows, Index columns) : steps_{Matrix<double>::Zero(rows + 1, columns + 1)} {}

  void add(const std::vector<PositionRange>& rows, const std::vector<PositionRange>& columns, double value) {
    for (const PositionRange& i : rows)
      for (const PositionRange& j : columns) {
        steps_(i.begin, j.begin) += value;
        steps_(i.begin, j.end) -= value;
        steps_(i.end, j.begin) -= value;
        steps_(i.end, j.end) += value;
      }
  }

  /// Everything that was added. It may be called once.
  [[nodiscard]] Matrix<double> take() {
    for (Index i = 1; i < steps_.rows(); ++i) steps_.row(i) += steps_.row(i - 1);
    for (Index j = 1; j < steps_.cols(); ++j) steps_.col(j) += steps_.col(j - 1);
    return steps_.topLeftCorner(steps_.rows() - 1, steps_.cols() - 1);
  }

 private:
  Matrix<double> steps_;
};

/// The weights are the Gaussian logits themselves, so that E = qk^2 K~_ab K~_ij and D = 1 (docs/theory/attention.md,
/// section 3.3). All sums are over products of two covariances, over all (i, j) or over those that a and b see. With
/// rotary positions every product is multiplied by rho((i - a) - (j - b)).
class IdentityAttention final : public DualAttention<IdentityAttention> {
 public:
  using DualAttention::DualAttention;

  /// Three products of covariances with the NTK, one without, and their sums. With rotary positions this is done for
  /// every diagonal.
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
    const Sums of = sums_of(pair, encoded);
    for_each_wanted(pair, [&](Index a, Index b) {
      const double weight = squared_query_key_std() * encoded.queries(a, b);
      AttentionSums sums{.values = weight * of.value_logits(a, b), .value_logits = of.value_logits(a, b)};
      if (pair.ntk.size() > 0) {
        sums.value_ntks = weight * of.value_ntks(a, b);
        sums.value_logit_ntks = of.value_logit_ntks(a, b);
      }
      write_entry(sums, encoded, a, b, result);
    });
  }

  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const EncodedPair encoded = encode(pair);
    EncodedPair bars = encoded.zeros();
    const Sums behind = sums_adjoint(pair, encoded, sums_of(pair, encoded), adjoint, bars);
    add_sums_adjoint(pair, encoded, behind, bars);
    add_encoded_adjoint(bars, adjoint);
  }

 private:
  /// The results of visible_sums() for V K~, T_V K~ and V T~, the last two with the NTK only; or their adjoints.
  struct Sums {
    Matrix<double> value_logits;
    Matrix<double> value_ntks;
    Matrix<double> value_logit_ntks;
  };

  template <typename Scalar>
  [[nodiscard]] Sums sums_of(const PairView<Scalar>& pair, const EncodedPair& encoded) const {
    Sums sums{visible_sums(pair, encoded.values, encoded.keys), {}, {}};
    if (pair.ntk.size() == 0) return sums;
    sums.value_ntks = visible_sums(pair, encoded.value_ntks, encoded.keys);
    sums.value_logit_ntks = visible_sums(pair, encoded.values, encoded.logit_ntks);
    return sums;
  }

  template <typename Scalar>
  Sums sums_adjoint(const PairView<Scalar>& pair, const EncodedPair& encoded, const Sums& sums,
                    const PairAdjoint<Scalar>& adjoint, EncodedPair& bars) const {
    const bool with_ntk = sums.value_ntks.size() > 0;
    const Matrix<double> zeros = Matrix<double>::Zero(encoded.keys.rows(), encoded.keys.cols());
    Sums behind{zeros, zeros, zeros};
    const double qk2 = squared_query_key_std();
    for_each_wanted(pair, [&](Index a, Index b) {
      const double weight = qk2 * encoded.queries(a, b);
      const AttentionSums entry{.value_logits = sums.value_logits(a, b),
                                .value_logit_ntks = with_ntk ? sums.value_logit_ntks(a, b) : 0.0};
      const AttentionSums back = entry_adjoint(entry, encoded, a, b, adjoint, bars);
      const double of_ntks = with_ntk ? back.value_ntks * sums.value_ntks(a, b) : 0.0;
      bars.queries(a, b) += qk2 * (back.values * sums.value_logits(a, b) + of_ntks);
      behind.value_logits(a, b) = back.values * weight + back.value_logits;
      behind.value_ntks(a, b) = back.value_ntks * weight;
      behind.value_logit_ntks(a, b) = back.value_logit_ntks;
    });
    return behind;
  }

  template <typename Scalar>
  void add_sums_adjoint(const PairView<Scalar>& pair, const EncodedPair& encoded, const Sums& behind,
                        EncodedPair& bars) const {
    const Matrix<double> value_logits = spread_sums(pair, behind.value_logits);
    bars.values += value_logits.cwiseProduct(encoded.keys);
    bars.keys += value_logits.cwiseProduct(encoded.values);
    if (pair.ntk.size() == 0) return;
    const Matrix<double> value_ntks = spread_sums(pair, behind.value_ntks);
    bars.value_ntks += value_ntks.cwiseProduct(encoded.keys);
    bars.keys += value_ntks.cwiseProduct(encoded.value_ntks);
    const Matrix<double> value_logit_ntks = spread_sums(pair, behind.value_logit_ntks);
    bars.values += value_logit_ntks.cwiseProduct(encoded.logit_ntks);
    bars.logit_ntks += value_logit_ntks.cwiseProduct(encoded.values);
  }

  /// The transpose of visible_sums(): for every (i, j), the sum of `behind`(a, b) over the wanted (a, b) that see it,
  /// multiplied by rho with rotary positions.
  template <typename Scalar>
  [[nodiscard]] Matrix<double> spread_sums(const PairView<Scalar>& pair, const Matrix<double>& behind) const {
    if (options().sequence.rotary) return turned_spread(pair, behind);
    const Index d = behind.rows(), e = behind.cols();
    if (sees_everything(options())) return Matrix<double>::Constant(d, e, behind.sum());
    const SeenPositions rows(options(), d), columns(options(), e);
    RectangleSpread spread(d, e);
    for_each_wanted(pair, [&](Index a, Index b) { spread.add(rows.of(a), columns.of(b), behind(a, b)); });
    return spread.take();
  }

  template <typename Scalar>
  [[nodiscard]] Matrix<double> turned_spread(const PairView<Scalar>& pair,
                                             const Matrix<double>& behind) const {
    const Index d = behind.rows(), e = behind.cols();
    const SeenPositions rows(options(), d), columns(options(), e);
    const RotaryTable rho(*options().sequence.rotary, 2 * (d + e));
    Matrix<double> result = Matrix<double>::Zero(d, e);
    for_each_diagonal(pair, [&](Index diagonal, Index first, Index last) {
      RectangleSpread spread(d, e);
      for (Index a = first; a < last; ++a)
        spread.add(rows.of(a), columns.of(a - diagonal), behind(a, a - diagonal));
      const Matrix<double> spread_out = spread.take();
      for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < e; ++j) result(i, j) += spread_out(i, j) * rho(i - j - diagonal);
    });
    return result;
  }

  /// Calls body(diagonal, first, last) for every diagonal a - b of the wanted entries, on which a runs from first to
  /// last - 1.
  template <typename Scalar, typename Body>
  static void for_each_diagonal(const PairView<Scalar>& pair, const Body& body) {
    const Index d = pair.nngp.rows(), e = pair.nngp.cols();
    const bool all = pair.wanted == Entries::all;
    for (Index diagonal = all ? 1 - e : 0; diagonal <= (all ? d - 1 : 0); ++diagonal) {
      pair.stop.check();
      body(diagonal, std::max<Index>(0, diagonal), std::min(d, e + diagonal));
    }
  }

  /// For every wanted (a, b), the sum of left_ij right_ij over the (i, j) that a and b see, multiplied by rho with
  /// rotary positions.
  template <typename Scalar>
  [[nodiscard]] Matrix<double> visible_sums(const PairView<Scalar>& pair, const Matrix<double>& left,
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

  /// rho((i - a) - (j - b)) depends on a and b through a - b only, so there is one table of sums for every diagonal
  /// of the result.
  template <typename Scalar>
  [[nodiscard]] Matrix<double> turned_sums(const PairView<Scalar>& pair,
                                           const Matrix<double>& products) const {
    const Index d = products.rows(), e = products.cols();
    const SeenPositions rows(options(), d), columns(options(), e);
    const RotaryTable rho(*options().sequence.rotary, 2 * (d + e));
    Matrix<double> result(d, e), turned(d, e);
    for_each_diagonal(pair, [&](Index diagonal, Index first, Index last) {
      for (Index i = 0; i < d; ++i)
        for (Index j = 0; j < e; ++j) turned(i, j) = products(i, j) * rho(i - j - diagonal);
      const RectangleSums sums(turned);
      for (Index a = first; a < last; ++a)
        result(a, a - diagonal) = sums.over(rows.of(a), columns.of(a - diagonal));
    });
    return result;
  }
};

}  // namespace

std::shared_ptr<const PairStage> make_identity_attention(const AttentionOptions& options) {
  return std::make_shared<IdentityAttention>(options);
}

}  // namespace widelimit::layers
