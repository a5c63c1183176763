#include "kernel/readouts/leading_outputs.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernel/readouts/few_columns.hpp"
#include "kernel/readouts/position_rotation.hpp"
#include "numerics/gemm.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit {
namespace {

using numerics::gemm;
using numerics::Transpose;

/// The rank and both tails stand in front. They take a whole cache line of floats.
constexpr Index header_size = 16;
/// The directions that are found at once, and the signs that measure what the directions so far leave out.
constexpr Index block_size = 16;
// The letters "lead". A fixed seed makes states, and so kernels, reproducible.
constexpr std::uint64_t seed = 0x6c656164;

using DoubleMatrix = Matrix<double>;

/// Z^T X: the weights with which combinations X of the outputs see the positions before the attention.
template <typename Scalar>
Matrix<Scalar> seen_by(const OwnOutputs<Scalar>& own, const Matrix<Scalar>& columns) {
  if (own.scales == nullptr) return times(Transpose::yes, own.weights, columns);
  const Eigen::Map<const Vector<Scalar>> scales(own.scales, own.d);
  return times<Scalar>(Transpose::yes, own.weights, scales.asDiagonal() * columns);
}

/// Z X: the outputs of combinations X of the positions before the attention.
template <typename Scalar>
Matrix<Scalar> outputs_of(const OwnOutputs<Scalar>& own, const Matrix<Scalar>& columns) {
  Matrix<Scalar> result = times(Transpose::no, own.weights, columns);
  if (own.scales != nullptr)
    result.array().colwise() *= Eigen::Map<const Vector<Scalar>>(own.scales, own.d).array();
  return result;
}

/// Random signs [d, block_size]. For a vector x of independent signs E[x^T M x] = tr M (Hutchinson's estimator).
template <typename Scalar>
Matrix<Scalar> random_signs(numerics::RandomStream& random, Index d) {
  Matrix<Scalar> signs(d, block_size);
  std::uint32_t bits = 0;
  for (Index i = 0; i < signs.size(); ++i) {
    if (i % 32 == 0) bits = random();
    signs.data()[i] = (bits & 1U) != 0 ? Scalar{1} : Scalar{-1};
    bits >>= 1U;
  }
  return signs;
}

/// The variances of the outputs without the last term of leading_outputs.hpp: diag(P G + G P - P G P), G = Z V Z^T.
/// `directions` is U, `nngp_outputs` V Y^T and `own_covariance` Y V Y^T = U^T G U.
template <typename Scalar>
Vector<Scalar> leading_variances(const OwnOutputs<Scalar>& own, const Matrix<Scalar>& directions,
                                 const Matrix<Scalar>& nngp_outputs, const DoubleMatrix& own_covariance) {
  const Matrix<Scalar> shared = outputs_of(own, nngp_outputs),
                       among = combined<Scalar>(directions, own_covariance.template cast<Scalar>());
  return directions.cwiseProduct(2 * shared - among).rowwise().sum();
}

/// Finds the leading directions U of one input's outputs, block by block: signs x are made orthogonal to U, and the
/// span of Z T Z^T x is appended to U. The mean of x^T Z T Z^T x estimates the tail of U before that; once it seems
/// small enough, the tail is computed.
template <typename Scalar>
class DirectionSearch {
 public:
  explicit DirectionSearch(const OwnOutputs<Scalar>& own)
      : own_{own},
        d_{own.d},
        most_{most_directions(own.d) * 3 / 2},  // write() drops some again
        directions_(d_, most_),
        outputs_(d_, most_) {}

  /// Begins with the span of these block_size columns, which need not be orthonormal. `nngp` is tr Z V Z^T.
  void start(const Matrix<Scalar>& found, double nngp) {
    nngp_held_ = nngp;
    append(found);
  }

  /// False if most_directions() will not be enough.
  bool run() {
    while (true) {
      own_.stop.check();
      const Matrix<Scalar> seen = seen_by(own_, orthogonal_signs()),
                           behind = times(Transpose::no, own_.ntk, seen);
      // The signs are independent of the directions so far, so that their mean is an unbiased estimate of the tail.
      const Estimate ntk = estimate_tail(seen, behind);
      if (directions_.count() > 0 && seems_enough(ntk, seen) && is_enough()) return true;
      if (is_hopeless(ntk.mean)) return false;
      append(outputs_of(own_, behind));
    }
  }

  /// Rotates the directions to combinations ordered by their share of both kernels, and writes as few as leave out no
  /// more than is allowed. False if that are more than most_directions().
  bool write(Scalar* numbers) {
    const Matrix<Scalar> outputs = outputs_.all();
    nngp_outputs_ = times(Transpose::no, own_.nngp, outputs);
    const DoubleMatrix ntk = symmetric(products(outputs, times(Transpose::no, own_.ntk, outputs))),
                       nngp = symmetric(products(outputs, nngp_outputs_));
    const double ntk_total = ntk.trace() + ntk_tail_, nngp_total = nngp.trace() + nngp_tail_;
    if (!(ntk_total > 0 && nngp_total > 0)) return false;
    const Eigen::SelfAdjointEigenSolver<DoubleMatrix> solver(ntk / ntk_total + nngp / nngp_total);
    const DoubleMatrix& vectors = solver.eigenvectors();  // the smallest first
    double ntk_left = ntk_tail_, nngp_left = nngp_tail_;
    const Index count = directions_.count();
    Index first = 0;
    // One combination is always kept, since rank 0 means that there are none.
    for (; first < count - 1; ++first) {
      const auto vector = vectors.col(first);
      const double ntk_more = ntk_left + vector.dot(ntk * vector),
                   nngp_more = nngp_left + vector.dot(nngp * vector);
      if (ntk_more > allowed * ntk_total || nngp_more > allowed * nngp_total) break;
      ntk_left = ntk_more;
      nngp_left = nngp_more;
    }
    const Index rank = count - first;
    if (rank > most_directions(d_) || ntk_left > allowed * ntk_total || nngp_left > allowed * nngp_total)
      return false;
    numbers[0] = static_cast<Scalar>(rank);
    numbers[1] = static_cast<Scalar>(std::max(nngp_left, 0.0) / nngp_total);
    numbers[2] = static_cast<Scalar>(std::max(ntk_left, 0.0) / ntk_total);
    const Matrix<Scalar> turn = vectors.rightCols(rank).rowwise().reverse().template cast<Scalar>();
    nngp_outputs_ = combined(nngp_outputs_, turn);
    Scalar* const place = numbers + header_size;
    directions_.combine(turn, place);
    outputs_.combine(turn, place + rank * d_);
    return true;
  }

  /// V Y^T of what was written, [d, rank].
  [[nodiscard]] const Matrix<Scalar>& nngp_outputs() const { return nngp_outputs_; }

 private:
  /// Less than the largest tail, because write_normed_outputs() multiplies tails by a factor of 1 or a little more.
  static constexpr double allowed = 0.98 * largest_tail<Scalar>;

  struct Estimate {
    double mean;  ///< The mean of block_size unbiased estimates.
    double high;  ///< The mean and four standard errors.
  };

  /// Random signs minus their projections on the directions.
  Matrix<Scalar> orthogonal_signs() {
    Matrix<Scalar> signs = random_signs<Scalar>(random_, d_);
    remove_directions(signs);
    return signs;
  }

  void remove_directions(Matrix<Scalar>& columns) const {
    if (directions_.count() > 0) directions_.subtract(directions_.products_with(columns), columns);
  }

  /// Column i gives the estimate y^T M y, where `seen` is y = Z^T x and `behind` is M y. No large numbers are
  /// subtracted, so that tails far below the rounding error of the whole trace are found.
  static Estimate estimate_tail(const Matrix<Scalar>& seen, const Matrix<Scalar>& behind) {
    std::array<double, block_size> samples{};
    for (Index row = 0; row < seen.rows(); ++row)
      for (Index i = 0; i < block_size; ++i)
        samples[static_cast<std::size_t>(i)] +=
            static_cast<double>(seen(row, i)) * static_cast<double>(behind(row, i));
    constexpr auto count = static_cast<double>(block_size);
    double mean = 0, variance = 0;
    for (const double sample : samples) mean += sample / count;
    for (const double sample : samples) variance += (sample - mean) * (sample - mean) / (count - 1);
    return {mean, mean + 4 * std::sqrt(variance / count)};
  }

  /// The NNGP's tail, as a rule the smaller one, takes another product and is estimated last.
  bool seems_enough(const Estimate& ntk, const Matrix<Scalar>& seen) const {
    return ntk.high <= allowed * ntk_held_ &&
           estimate_tail(seen, times(Transpose::no, own_.nngp, seen)).high <= allowed * nngp_held_;
  }

  /// Computes the tails, the traces of R T R^T and R V R^T for what the directions leave of Z, R = Z - U Y. No large
  /// numbers are subtracted after R. R^T R is made 256 columns at a time and, since it is symmetric, above them and
  /// on the diagonal only: about 1.25 d^3 operations.
  bool is_enough() {
    constexpr Index most_columns = 256;
    Matrix<Scalar> rest = Eigen::Map<const Matrix<Scalar>>(own_.weights, d_, d_);
    if (own_.scales != nullptr)
      rest.array().colwise() *= Eigen::Map<const Vector<Scalar>>(own_.scales, d_).array();
    directions_.subtract(outputs_.all().transpose(), rest);
    ntk_tail_ = nngp_tail_ = 0;
    Matrix<Scalar> squares;
    for (Index first = 0; first < d_; first += most_columns) {
      own_.stop.check();
      const Index count = std::min(most_columns, d_ - first), rows = first + count;
      squares.resize(rows, count);
      gemm(Transpose::yes, Transpose::no, rows, count, d_, Scalar{1}, {rest.data(), d_},
           {rest.data() + first, d_}, Scalar{0}, squares.data(), count);
      squares.topRows(first) *= 2;
      const auto sum = [&](const Scalar* kernel) {
        double total = 0;
        for (Index row = 0; row < rows; ++row)
          total += numerics::linear_rows<Scalar>().dot(
              squares.data() + row * count, kernel + row * d_ + first, static_cast<std::size_t>(count));
        return total;
      };
      ntk_tail_ += sum(own_.ntk);
      nngp_tail_ += sum(own_.nngp);
    }
    return ntk_tail_ <= allowed * ntk_held_ && nngp_tail_ <= allowed * nngp_held_;
  }

  /// Tails fall ever more slowly from block to block. If even the latest rate leaves too much at the end, the search
  /// cannot succeed.
  bool is_hopeless(double tail) {
    if (!std::isfinite(tail)) return true;
    const double last = std::exchange(last_tail_, tail);
    const Index count = directions_.count();
    if (count + block_size > most_) return true;
    // The first fall, from the whole trace, says nothing about the later ones.
    if (count < 2 * block_size || !(tail > 0)) return false;
    const double blocks = static_cast<double>(most_ - count) / static_cast<double>(block_size);
    return tail * std::pow(std::min(tail / last, 1.0), blocks) > allowed * ntk_held_;
  }

  /// Appends the span of the columns to the directions, orthonormal and orthogonal to those so far.
  void append(Matrix<Scalar> found) {
    for (Index column = 0; column < block_size; ++column) {
      // Kernels may be near the ends of the range of float. Columns of size 1 keep the products below in range.
      const Scalar size = found.col(column).cwiseAbs().maxCoeff();
      if (size > 0) found.col(column) /= size;
    }
    // What remains of the columns may be small, and the rounding errors of one Gram-Schmidt pass large beside it.
    for (int repeat = 0; repeat < 2; ++repeat) {
      remove_directions(found);
      found = orthonormal(found);
    }
    directions_.append(found);
    const Matrix<Scalar> outputs = seen_by(own_, found);
    // The first block of directions holds nearly the whole trace and never more than it. Tails are compared with
    // that.
    if (outputs_.count() == 0) {
      ntk_held_ = trace_of(outputs, own_.ntk);
      if (nngp_held_ == 0) nngp_held_ = trace_of(outputs, own_.nngp);
    }
    outputs_.append(outputs);
  }

  /// tr Y M Y^T for block_size rows of Y: estimate_tail() gives their mean.
  static double trace_of(const Matrix<Scalar>& outputs, const Scalar* covariance) {
    return estimate_tail(outputs, times(Transpose::no, covariance, outputs)).mean *
           static_cast<double>(block_size);
  }

  static DoubleMatrix symmetric(const DoubleMatrix& matrix) { return (matrix + matrix.transpose()) / 2; }

  OwnOutputs<Scalar> own_;
  Index d_;
  Index most_;
  ColumnBlocks<Scalar> directions_;
  ColumnBlocks<Scalar> outputs_;
  Matrix<Scalar> nngp_outputs_;
  double ntk_held_ = 0, nngp_held_ = 0;  ///< The traces that the first block of directions holds.
  double ntk_tail_ = 0, nngp_tail_ = 0;
  double last_tail_ = 0;
  numerics::RandomStream random_{seed};
};

}  // namespace

Index most_directions(Index d) {
  // With d / 8 directions leading_weights() takes 4 (d / 8) d^2 = d^3 / 2 operations, half of the exact product.
  constexpr Index fewest_positions = 256, share = 8;
  return d < fewest_positions ? 0 : d / share;
}

Index leading_size(Index d) { return most_directions(d) == 0 ? 0 : header_size + 2 * most_directions(d) * d; }

template <typename Scalar>
LeadingOutputs<Scalar> leading_outputs(const Scalar* numbers, Index d) {
  const auto rank = static_cast<Index>(numbers[0]);
  const Scalar* const directions = numbers + header_size;
  return {rank, static_cast<double>(numbers[1]), static_cast<double>(numbers[2]), directions,
          directions + rank * d};
}

template <typename Scalar>
void write_no_leading_outputs(Scalar* numbers) {
  std::fill_n(numbers, header_size, Scalar{0});
}

template <typename Scalar>
void write_leading_outputs(const OwnOutputs<Scalar>& own, Scalar* numbers) {
  write_no_leading_outputs(numbers);
  DirectionSearch<Scalar> search(own);
  if (!search.run() || !search.write(numbers)) write_no_leading_outputs(numbers);
}

template <typename Scalar>
std::optional<NormedOutputs<Scalar>> normed_outputs(const OwnOutputs<Scalar>& own) {
  const Index d = own.d;
  // A first block of directions gives the variances to three digits or more, enough for scales of the search. The
  // stream is not the one that the search draws from.
  numerics::RandomStream random(seed, 1);
  Matrix<Scalar> found =
      outputs_of(own, times(Transpose::no, own.ntk, seen_by(own, random_signs<Scalar>(random, d))));
  const Matrix<Scalar> first = orthonormal(found), outputs = seen_by(own, first),
                       nngp_outputs = times(Transpose::no, own.nngp, outputs);
  NormedOutputs<Scalar> result;
  result.scales = leading_variances(own, first, nngp_outputs, products(outputs, nngp_outputs));
  if (!(result.scales.minCoeff() > 0) || !result.scales.allFinite()) return std::nullopt;
  result.scales = result.scales.cwiseSqrt().cwiseInverse();
  found.array().colwise() *= result.scales.array();
  OwnOutputs<Scalar> scaled = own;
  scaled.scales = result.scales.data();
  DirectionSearch<Scalar> search(scaled);
  search.start(found, static_cast<double>(d));  // the scales make all variances 1
  result.numbers.resize(static_cast<std::size_t>(leading_size(d)));
  if (!search.run() || !search.write(result.numbers.data())) return std::nullopt;
  const LeadingOutputs<Scalar> leading = leading_outputs<Scalar>(result.numbers.data(), d);
  const Matrix<Scalar> directions = Eigen::Map<const Matrix<Scalar>>(leading.directions, d, leading.rank),
                       kept = Eigen::Map<const Matrix<Scalar>>(leading.outputs, d, leading.rank);
  // The scales s are taken out again: the search sees variances of A times s^2.
  result.variances =
      leading_variances(scaled, directions, search.nngp_outputs(), products(kept, search.nngp_outputs()))
          .cwiseQuotient(result.scales.cwiseAbs2());
  if (!(result.variances.minCoeff() > 0)) return std::nullopt;
  return result;
}

template <typename Scalar>
bool write_normed_outputs(const NormedOutputs<Scalar>& found, const Vector<Scalar>& weights,
                          Scalar* numbers) {
  const Index d = weights.size();
  const LeadingOutputs<Scalar> leading = leading_outputs<Scalar>(found.numbers.data(), d);
  // With C = diag(change) the outputs along the directions are C U U^T diag(s) A: C U takes the place of U, and Y
  // stays. C U is not orthonormal, which leading_weights() does not need. At most max|c|^2 times the scaled tail is
  // left out of at least min|c|^2 times the scaled whole.
  const Vector<Scalar> change = weights.cwiseQuotient(found.scales);
  const double smallest = static_cast<double>(change.cwiseAbs().minCoeff()),
               largest = static_cast<double>(change.cwiseAbs().maxCoeff()),
               spread = largest * largest / (smallest * smallest);
  // A weight of 0, as at positions without variance, makes the spread infinite or the product NaN.
  if (!(spread * std::max(leading.nngp_tail, leading.ntk_tail) <= largest_tail<Scalar>)) return false;
  std::copy(found.numbers.begin(), found.numbers.begin() + header_size + 2 * leading.rank * d, numbers);
  numbers[1] *= static_cast<Scalar>(spread);
  numbers[2] *= static_cast<Scalar>(spread);
  Eigen::Map<Matrix<Scalar>> directions(numbers + header_size, d, leading.rank);
  directions = (change.asDiagonal() * directions).eval();
  rotate_rows(directions.data(), d, leading.rank);
  return true;
}

Index leading_scratch(Index d) {
  const Index most = most_directions(d);
  return 4 * most * d;
}

template <typename Scalar>
void leading_weights(const LeadingPair<Scalar>& pair, Scalar* scratch, Scalar* weights) {
  const Index d = pair.d, r = pair.left.rank, s = pair.right.rank, width = r + s;
  // Both factors are [d, width] row by row, of up to 2 * most_directions(d) columns. W is left right^T.
  Scalar* const left = scratch;            // [Y^T, Z^T U']
  Scalar* const right = left + width * d;  // [Z'^T U - Y'^T (U'^T U), Y'^T]
  const auto put = [&](const Scalar* columns, Index count, Scalar* target) {
    for (Index a = 0; a < d; ++a) std::copy_n(columns + a * count, count, target + a * width);
  };
  put(pair.left.outputs, r, left);
  gemm(Transpose::yes, Transpose::no, d, s, d, Scalar{1}, {pair.left_weights, d}, {pair.right.directions, s},
       Scalar{0}, left + r, width);
  gemm(Transpose::yes, Transpose::no, d, r, d, Scalar{1}, {pair.right_weights, d}, {pair.left.directions, r},
       Scalar{0}, right, width);
  const Matrix<Scalar> shared = products<Scalar>({pair.right.directions, s}, {pair.left.directions, r}, d)
                                    .template cast<Scalar>();  // U'^T U
  gemm(Transpose::no, Transpose::no, d, r, s, Scalar{-1}, {pair.right.outputs, s}, {shared.data(), r},
       Scalar{1}, right, width);
  put(pair.right.outputs, s, right + r);
  gemm(Transpose::no, Transpose::yes, d, d, width, Scalar{1}, {left, width}, {right, width}, Scalar{0},
       weights, d);
}

template LeadingOutputs<float> leading_outputs(const float*, Index);
template LeadingOutputs<double> leading_outputs(const double*, Index);
template void write_leading_outputs(const OwnOutputs<float>&, float*);
template void write_leading_outputs(const OwnOutputs<double>&, double*);
template std::optional<NormedOutputs<float>> normed_outputs(const OwnOutputs<float>&);
template std::optional<NormedOutputs<double>> normed_outputs(const OwnOutputs<double>&);
template bool write_normed_outputs(const NormedOutputs<float>&, const Vector<float>&, float*);
template bool write_normed_outputs(const NormedOutputs<double>&, const Vector<double>&, double*);
template void write_no_leading_outputs(float*);
template void write_no_leading_outputs(double*);
template void leading_weights(const LeadingPair<float>&, float*, float*);
template void leading_weights(const LeadingPair<double>&, double*, double*);

}  // namespace widelimit
