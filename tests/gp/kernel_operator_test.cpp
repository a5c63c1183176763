#include "widelimit/gp/kernel_operator.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::gp_test::random_matrix;

namespace {

Matrix<double> symmetric_matrix(Index n, std::uint64_t seed) {
  const Matrix<double> factor = random_matrix(n, n, seed);
  return factor + factor.transpose();
}

/// The largest |product - K x| over sum |K| |x|, entry by entry.
double error_of_product(const Matrix<double>& k, const Matrix<double>& x, const Matrix<double>& product) {
  REQUIRE(product.rows() == k.rows());
  REQUIRE(product.cols() == x.cols());
  double worst = 0;
  for (Index i = 0; i < k.rows(); ++i)
    for (Index j = 0; j < x.cols(); ++j) {
      double sum = 0, scale = 0;
      for (Index l = 0; l < k.cols(); ++l) {
        sum += k(i, l) * x(l, j);
        scale += std::abs(k(i, l) * x(l, j));
      }
      worst = std::max(worst, std::abs(product(i, j) - sum) / scale);
    }
  return worst;
}

/// An operator that knows no more than it has to, and counts its passes.
class PlainOperator final : public KernelOperator {
 public:
  explicit PlainOperator(Matrix<double> gram) : gram_{std::move(gram)} {}
  [[nodiscard]] Index size() const override { return gram_.rows(); }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override {
    ++passes_;
    return gram_ * x;
  }
  [[nodiscard]] Vector<double> diagonal() const override { return gram_.diagonal(); }
  [[nodiscard]] int passes() const { return passes_; }

 private:
  Matrix<double> gram_;
  mutable int passes_ = 0;
};

template <typename Scalar>
void check_matrix_operator() {
  const Matrix<Scalar> k =
      symmetric_matrix(300, 3).cast<Scalar>();  // float goes through in blocks of 256 rows
  const Matrix<double> exact = k.template cast<double>(), x = random_matrix(300, 4, 4);
  const MatrixOperator<Scalar> gram(k);
  CHECK(gram.size() == 300);
  CHECK(error_of_product(exact, x, gram.multiply(x)) < 1e-14);
  CHECK((gram.diagonal() - exact.diagonal()).isZero(0));
  const std::vector<Index> chosen{299, 0, 256, 0};
  CHECK((gram.columns(chosen) - exact(Eigen::all, chosen)).isZero(0));
  CHECK(gram.epsilon() == static_cast<double>(std::numeric_limits<Scalar>::epsilon()));
}

}  // namespace

TEST_CASE("kernel operator: columns come from one pass unless a class knows better") {
  const Matrix<double> k = symmetric_matrix(6, 1);
  const PlainOperator plain(k);
  const std::vector<Index> chosen{5, 2, 2};
  CHECK((plain.columns(chosen) - k(Eigen::all, chosen)).isZero(0));
  CHECK(plain.passes() == 1);
  CHECK(plain.epsilon() == std::numeric_limits<double>::epsilon());
}

TEST_CASE("kernel operator: a matrix of float or double multiplies as plain loops do") {
  check_matrix_operator<float>();
  check_matrix_operator<double>();
}

TEST_CASE("kernel operator: matrices that are not square, symmetric or finite are refused") {
  const auto made = [](const Matrix<double>& k) { return MatrixOperator<double>(k).size(); };
  CHECK_THROWS_WITH_AS((void)made(Matrix<double>::Ones(2, 3)),
                       "MatrixOperator: the Gram matrix must be square with at least one row, got [2, 3]",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)made(Matrix<double>(0, 0)),
                       "MatrixOperator: the Gram matrix must be square with at least one row, got [0, 0]",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)made(Matrix<double>{{1.0, 0.5}, {0.25, 1.0}}),
                       "MatrixOperator: the Gram matrix must be finite and symmetric, but entry (1, 0) is "
                       "0.25 and entry (0, 1) is 0.5 (indices from 0)",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)made(Matrix<double>{{1.0, 0.0}, {0.0, HUGE_VAL}}),
                       doctest::Contains("entry (1, 1) is inf"), ArgumentError);
  CHECK_THROWS_WITH_AS((void)made(Matrix<double>{{std::nan("")}}), doctest::Contains("entry (0, 0) is nan"),
                       ArgumentError);
  CHECK(made(Matrix<double>{{1.0, 0.5}, {0.5 + 1e-7, 1.0}}) == 2);  // as far as rounding of float goes
}

TEST_CASE("kernel operator: tiles of the upper triangle make the whole matrix, whatever is left at its end") {
  const Matrix<double> k = symmetric_matrix(23, 5), x = random_matrix(23, 3, 6);
  for (const Index side : {1, 7, 23, 100}) {
    CAPTURE(side);
    Index entries = 0;
    const TileOperator tiles(23, side, [&](Index row, Index rows, Index column, Index columns) {
      CHECK(row <= column);
      entries += rows * columns;
      return Matrix<double>(k.block(row, column, rows, columns));
    });
    CHECK(tiles.size() == 23);
    CHECK(error_of_product(k, x, tiles.multiply(x)) < 1e-14);
    const Index whole = 23 / side, rest = 23 % side;  // square tiles of the diagonal
    CHECK(entries == (23 * 23 + whole * side * side + rest * rest) / 2);
    CHECK((tiles.diagonal() - k.diagonal()).isZero(0));
    CHECK((tiles.columns(std::vector<Index>{22, 3}) - k(Eigen::all, std::vector<Index>{22, 3})).isZero(0));
  }
}

TEST_CASE("kernel operator: tiles that do not fit, NaN and sizes of 0 are named") {
  const auto nothing = [](Index, Index, Index, Index) { return Matrix<double>(0, 0); };
  CHECK_THROWS_WITH_AS((void)TileOperator(0, 4, nothing),
                       "TileOperator: expected n and side to be positive, got n = 0, side = 4",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)TileOperator(4, -1, nothing),
                       "TileOperator: expected n and side to be positive, got n = 4, side = -1",
                       ArgumentError);
  const TileOperator square(
      5, 3, [](Index, Index, Index, Index) -> Matrix<double> { return Matrix<double>::Identity(3, 3); });
  CHECK_THROWS_WITH_AS((void)square.multiply(Matrix<double>::Ones(5, 1)),
                       "TileOperator: expected the tile at (0, 3) as [3, 2], got [3, 3]", ArgumentError);
  const TileOperator hole(5, 3, [](Index row, Index rows, Index, Index columns) -> Matrix<double> {
    return Matrix<double>::Constant(rows, columns, row == 3 ? std::nan("") : 1);
  });
  CHECK_THROWS_WITH_AS((void)hole.diagonal(), "TileOperator: the tile at (3, 3) holds NaN or infinity",
                       NumericalError);
}

TEST_CASE("tile products: those of a triangle's tiles, of any sizes, add up to the whole product") {
  const Matrix<double> k = symmetric_matrix(70, 5), x = random_matrix(70, 3, 6);
  Matrix<double> product = Matrix<double>::Zero(70, 3);
  // Below the diagonal this time.
  const std::vector<Index> ends{0, 32, 40, 70};
  for (std::size_t i = 0; i + 1 < ends.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      add_tile_product(product, k.block(ends[i], ends[j], ends[i + 1] - ends[i], ends[j + 1] - ends[j]),
                       ends[i], ends[j], x);
  CHECK(error_of_product(k, x, product) < 1e-14);
}
