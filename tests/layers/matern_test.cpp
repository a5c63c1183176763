#include "widelimit/layers/matern.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "layers/layer_errors.hpp"
#include "widelimit/finite.hpp"
#include "widelimit/kernel/gram.hpp"
#include "widelimit/kernel/gram_vjp.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/dense.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

/// Rasmussen & Williams 2006, equation 4.17, in long double.
long double matern_of(double smoothness, long double distance, double length) {
  const long double s = std::sqrt(2 * smoothness) * distance / length, decay = std::exp(-s);
  if (smoothness == 0.5) return decay;
  if (smoothness == 1.5) return (1 + s) * decay;
  return (1 + s + s * s / 3) * decay;
}

/// Rows of several sizes; the last is the first again.
template <typename Scalar>
Matrix<Scalar> some_rows() {
  Matrix<Scalar> x(6, 5);
  for (Index i = 0; i < 5; ++i)
    for (Index c = 0; c < 5; ++c)
      x(i, c) = static_cast<Scalar>(std::sin(1.7 * static_cast<double>(5 * i + c)) *
                                    (1 + 0.3 * static_cast<double>(i)));
  x.row(5) = x.row(0);
  return x;
}

template <typename Scalar>
long double distance_of(const Matrix<Scalar>& x, Index i, Index j) {
  const auto difference = (x.row(i) - x.row(j)).template cast<long double>();
  return std::sqrt(difference.squaredNorm() / static_cast<long double>(x.cols()));
}

Network network(double smoothness, double length) {
  return Network({dense(), matern(smoothness, length), dense()});
}

}  // namespace

TEST_CASE("matern: its numbers; it is no nonlinearity, and has no finite network") {
  CHECK(error_of([] { return matern(1, 1); }) == "matern: smoothness must be 0.5, 1.5 or 2.5, got 1");
  CHECK(error_of([] { return matern(0.5, 0); }) == "matern: length must be from 1e-09 to 1000000000, got 0");
  CHECK(error_of([] { return matern(1.5, nan); }).find("got nan") != std::string::npos);
  CHECK(error_of([] { return activation_of(matern()); }) ==
        "expected a nonlinearity such as relu, got the layer matern");
}

TEST_CASE_TEMPLATE("matern: its formula, exactly 1 for equal inputs, and the same NTK after a readout",
                   Scalar, float, double) {
  const Matrix<Scalar> x = some_rows<Scalar>();
  const double epsilon = std::numeric_limits<Scalar>::epsilon();
  for (const double smoothness : {0.5, 1.5, 2.5})
    for (const double length : {0.3, 1.0, 20.0}) {
      CAPTURE(smoothness);
      CAPTURE(length);
      const auto kernels = gram<Scalar>(network(smoothness, length), x);
      for (Index i = 0; i < x.rows(); ++i)
        for (Index j = 0; j < x.rows(); ++j) {
          const auto expected = static_cast<double>(matern_of(smoothness, distance_of(x, i, j), length));
          CHECK(std::abs(static_cast<double>(kernels.nngp(i, j)) - expected) <= 30 * epsilon);
        }
      CHECK((kernels.nngp.diagonal().array() == 1).all());
      CHECK(kernels.nngp(0, 5) == 1);
      CHECK(kernels.ntk == kernels.nngp);
      CHECK(gram_diagonal<Scalar>(network(smoothness, length), x).nngp.isConstant(1, 0));
    }
}

// What cancels in p + q - 2c, whose errors are some rounding errors of p + q: nothing for smooth kernels, and the root
// of it for the Laplace kernel (the header).
TEST_CASE_TEMPLATE("matern: nearly equal inputs", Scalar, float, double) {
  const double epsilon = std::numeric_limits<Scalar>::epsilon();
  Matrix<Scalar> x(40, 8);
  for (Index i = 0; i < 40; ++i)
    for (Index c = 0; c < 8; ++c)
      x(i, c) = static_cast<Scalar>(
          std::cos(static_cast<double>(c)) +
          (i == 0 ? 0 : std::ldexp(std::sin(static_cast<double>(i + 3 * c)), static_cast<int>(-i))));
  for (const double smoothness : {0.5, 1.5, 2.5}) {
    const auto kernel = gram<Scalar>(network(smoothness, 1), x).nngp;
    double largest = 0;
    for (Index i = 1; i < 40; ++i)
      largest =
          std::max(largest, std::abs(static_cast<double>(kernel(0, i)) -
                                     static_cast<double>(matern_of(smoothness, distance_of(x, 0, i), 1))));
    CAPTURE(smoothness);
    CHECK(largest <= (smoothness == 0.5 ? 1.5 * std::sqrt(epsilon) : 10 * epsilon));
  }
}

TEST_CASE("matern: derivatives are those of differences, and 0 for equal inputs") {
  const Matrix<double> x = some_rows<double>();
  const Inputs<double> inputs(x);
  const Matrix<double> ones = Matrix<double>::Ones(6, 6);
  for (const double smoothness : {0.5, 1.5, 2.5}) {
    CAPTURE(smoothness);
    const Network kernel = network(smoothness, 0.8);
    const auto slopes = gram_vjp(kernel, inputs, inputs, {.nngp = ones, .ntk = {}}, VjpInputs::x1).x1;
    Matrix<double> expected = Matrix<double>::Zero(6, 5);
    for (Index i = 0; i < 6; ++i)
      for (Index j = 0; j < 6; ++j) {
        const auto r = static_cast<double>(distance_of(x, i, j));
        if (r == 0) continue;
        const double step = 1e-6;
        const auto slope = static_cast<double>(
            (matern_of(smoothness, r + step, 0.8) - matern_of(smoothness, r - step, 0.8)) / (2 * step));
        expected.row(i) += slope * (x.row(i) - x.row(j)) / (5 * r);
      }
    const Eigen::Map<const Matrix<double>> found(slopes.data(), 6, 5);
    CHECK((found - expected).cwiseAbs().maxCoeff() < 1e-8);
  }
}

TEST_CASE("matern: finite networks say that it has none") {
  try {
    static_cast<void>(finite::FiniteNetwork<double>(network(1.5, 1), {{}, 5}, {}, {}, 1, 1));
    FAIL("there is one");
  } catch (const NetworkError& error) {
    CHECK(std::string(error.what()).find("layers[1] (matern)") != std::string::npos);
  }
}

}  // namespace widelimit::testing
