#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gp/solvers/band_form.hpp"
#include "gp/solvers/linear_algebra.hpp"
#include "gp/solvers/spectrum.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {
namespace {

using Eigen::Index;

constexpr Index lanczos_block = 32;
constexpr Index lanczos_passes = 12;
constexpr const char* lanczos_place = "spectrum_of";

/// An orthonormal basis of a Krylov space, and K in it.
class BlockLanczos {
 public:
  explicit BlockLanczos(const Matrix<double>& probes)
      : block_{probes.cols()},
        basis_(std::min(probes.rows(), lanczos_passes * block_), probes.rows()),
        image_{Matrix<double>::Zero(basis_.rows(), basis_.rows())} {
    append(probes.transpose());
  }

  /// One pass: K times the newest vectors.
  template <typename Multiply>
  void advance(const Multiply& multiply) {
    const Matrix<double> newest = basis_.middleRows(done_, filled_ - done_).transpose();
    Matrix<double> next = multiply(newest).transpose();
    // These are the entries of K in the basis that concern the newest vectors; symmetry gives their mirror images.
    const Matrix<double> parts = gp::multiply(basis_.topRows(filled_), Transpose::no, next, Transpose::yes);
    image_.block(0, done_, filled_, parts.cols()) = parts;
    image_.block(done_, 0, parts.cols(), filled_) = parts.transpose();
    done_ = filled_;
    rest_ = append(std::move(next));
  }

  [[nodiscard]] bool is_full() const { return done_ == basis_.rows(); }
  [[nodiscard]] bool is_exact() const { return done_ == basis_.cols(); }

  /// Ritz values, ascending, and Ritz vectors as rows of coefficients in the basis.
  [[nodiscard]] SymmetricEigen ritz() const {
    // So small a problem is thousands of calls in which threads would wait for each other.
    const numerics::BlasThreads guard(1);
    return symmetric_eigen(image_.topLeftCorner(done_, done_), lanczos_place);
  }

  /// |K v - theta v| of Ritz vector number i.
  [[nodiscard]] double residual(const SymmetricEigen& ritz, Index i) const {
    if (is_exact()) return 0;
    return (rest_ * ritz.vectors.row(i).tail(rest_.cols()).transpose()).norm();
  }

  /// Mean over the probes of |K s - sum_i theta_i v_i v_i^T s|^2, the sum over the Ritz vectors from number `first` on.
  [[nodiscard]] double squares_left(const SymmetricEigen& ritz, Index first,
                                    const Matrix<double>& probes) const {
    const Matrix<double> start = gp::multiply(basis_.topRows(block_), Transpose::no, probes, Transpose::no);
    const auto vectors = ritz.vectors.bottomRows(ritz.values.size() - first);
    const auto values = ritz.values.tail(ritz.values.size() - first);
    const Matrix<double> left =
        image_.topLeftCorner(done_, block_) * start -
        vectors.transpose() * (values.asDiagonal() * (vectors.leftCols(block_) * start).eval());
    return left.squaredNorm() / static_cast<double>(probes.cols());
  }

 private:
  /// Takes what rows [count, n] have beside the basis into it, as far as there is room, and gives the coefficients: row
  /// i, column j of vector i in row j.
  Matrix<double> append(Matrix<double> rows) {
    const Index count = rows.rows(), n = rows.cols();
    Matrix<double> coefficients = Matrix<double>::Identity(count, count);
    // Directions that consist of nothing but rounding are projected again, until nothing of the basis is left in them.
    constexpr int repeats = 3;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      const auto known = basis_.topRows(filled_);
      // Projecting twice makes vectors orthogonal to rounding, once does not.
      for (int twice = 0; twice < 2 && filled_ > 0; ++twice)
        rows -= gp::multiply(gp::multiply(rows, Transpose::no, known, Transpose::yes), Transpose::no, known,
                             Transpose::no);
      coefficients = (orthonormalise(rows) * coefficients).eval();
    }
    const Index taken = std::min(count, basis_.rows() - filled_);
    basis_.block(filled_, 0, taken, n) = rows.topRows(taken);
    filled_ += taken;
    return coefficients;
  }

  /// Rows become orthonormal, whatever their rank: what they were is the result's columns times them.
  static Matrix<double> orthonormalise(Matrix<double>& rows) {
    const auto count = static_cast<lapack_int>(rows.rows()), n = static_cast<lapack_int>(rows.cols());
    std::vector<double> tau(static_cast<std::size_t>(count)), work(static_cast<std::size_t>(64 * count));
    const auto size = static_cast<lapack_int>(work.size());
    LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, n, count, rows.data(), n, tau.data(), work.data(), size);
    const Matrix<double> r = rows.leftCols(count).transpose().triangularView<Eigen::Upper>();
    LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, n, count, count, rows.data(), n, tau.data(), work.data(), size);
    return r;
  }

  Index block_;
  Matrix<double> basis_;  ///< Its vectors are rows.
  Matrix<double> image_;
  Matrix<double> rest_;  ///< What K times the newest vectors has beside the basis, in further ones.
  Index filled_ = 0;
  Index done_ = 0;  ///< Vectors of which K times them is known.
};

/// Frobenius norm of K from its largest Ritz vectors and the probes.
double frobenius_norm_of(const BlockLanczos& krylov, const SymmetricEigen& ritz,
                         const Matrix<double>& probes) {
  if (krylov.is_exact()) return ritz.values.norm();
  constexpr double settled = 1e-3;
  // Squares of eigenvalues are counted exactly for the Ritz vectors that have settled; what these leave is estimated
  // from the probes (Hutchinson).
  Index first = ritz.values.size();
  while (first > 0 && krylov.residual(ritz, first - 1) <= settled * ritz.values(first - 1)) --first;
  return std::sqrt(ritz.values.tail(ritz.values.size() - first).squaredNorm() +
                   krylov.squares_left(ritz, first, probes));
}

}  // namespace

double Spectrum::smallest_known() const {
  return smallest < 0 ? smallest : std::max(0.0, smallest - smallest_error);
}

Matrix<double> spectrum_probes(Index n) {
  // The seed is fixed, so that a matrix always has the same spectrum.
  numerics::RandomStream stream(0);
  Matrix<double> signs(n, std::min(n, lanczos_block));
  for (Index i = 0; i < signs.rows(); ++i)
    for (Index j = 0; j < signs.cols(); ++j) signs(i, j) = stream.uniform() < 0.5 ? -1 : 1;
  return signs;
}

Spectrum spectrum_of(const Matrix<double>& probes,
                     const std::function<Matrix<double>(const Matrix<double>& x)>& multiply) {
  constexpr Index passes_between_looks = 4;
  constexpr double settled = 1e-6;
  const auto n = static_cast<double>(probes.rows());
  BlockLanczos krylov(probes);
  for (Index pass = 1;; ++pass) {
    krylov.advance(multiply);
    if (!krylov.is_full() && pass % passes_between_looks != 0) continue;
    const SymmetricEigen ritz = krylov.ritz();
    const double smallest = ritz.values(0), largest = ritz.values(ritz.values.size() - 1);
    const double error = krylov.residual(ritz, 0);
    // An error below the rounding of K cannot be improved on.
    const double enough =
        std::max(settled * std::abs(smallest), n * std::numeric_limits<double>::epsilon() * largest);
    if (krylov.is_full() || error <= enough)
      return {smallest, error, largest, frobenius_norm_of(krylov, ritz, probes), probes.rows()};
  }
}

Spectrum spectrum_of(const KernelOperator& gram) {
  return spectrum_of(spectrum_probes(gram.size()),
                     [&gram](const Matrix<double>& x) { return gram.multiply(x); });
}

Spectrum BandForm::spectrum() const {
  return spectrum_of(to_band(spectrum_probes(size())),
                     [this](const Matrix<double>& x) { return multiply_band(x); });
}

}  // namespace widelimit::gp
