#include "layers/common/axis_map.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/matrix.hpp"

namespace widelimit::layers {
namespace {

Matrix<double> matrix_of(const AxisMap& map) {
  Matrix<double> matrix = Matrix<double>::Zero(map.rows(), map.columns);
  for (Index a = 0; a < map.rows(); ++a)
    for (Index k = 0; k < map.width; ++k)
      matrix(a, map.first[static_cast<std::size_t>(a)] + k) +=
          map.weights[static_cast<std::size_t>(a * map.width + k)];
  return matrix;
}

/// The interpolation kernels, by their definition.
long double kernel(ResizeMethod method, long double x) {
  x = std::abs(x);
  if (method == ResizeMethod::linear) return x < 1 ? 1 - x : 0;
  if (x < 1) return 1.5L * x * x * x - 2.5L * x * x + 1;
  return x < 2 ? -0.5L * x * x * x + 2.5L * x * x - 4 * x + 2 : 0;
}

/// Whether the kernel is 0 at the distance of position i from the place of row a: at 1 and 2, in integers.
bool is_zero(ResizeMethod method, Index a, Index i, Index size, Index new_size, bool antialias) {
  const Index distance = std::abs((2 * a + 1) * size - (2 * i + 1) * new_size);
  const Index unit = 2 * (antialias ? std::max(size, new_size) : new_size);
  return method == ResizeMethod::linear ? distance >= unit : distance == unit || distance >= 2 * unit;
}

TEST_CASE("resized axes: weights, and zeros exactly where the method has them") {
  for (const ResizeMethod method : {ResizeMethod::linear, ResizeMethod::cubic})
    for (const bool antialias : {false, true})
      for (Index size = 1; size <= 23; ++size)
        for (Index new_size = 1; new_size <= 23; ++new_size) {
          CAPTURE(size);
          CAPTURE(new_size);
          const Matrix<double> matrix = matrix_of(resize_map(size, new_size, method, antialias));
          REQUIRE(matrix.rows() == new_size);
          const long double shrinking = static_cast<long double>(size) / static_cast<long double>(new_size);
          const long double scale = antialias && shrinking > 1 ? shrinking : 1;
          for (Index a = 0; a < new_size; ++a) {
            const long double centre = (static_cast<long double>(a) + 0.5L) * shrinking - 0.5L;
            long double total = 0;
            for (Index i = 0; i < size; ++i)
              total += kernel(method, (centre - static_cast<long double>(i)) / scale);
            bool right = true;
            for (Index i = 0; i < size; ++i) {
              const auto expected =
                  static_cast<double>(kernel(method, (centre - static_cast<long double>(i)) / scale) / total);
              right = right && std::abs(matrix(a, i) - expected) < 1e-14;
              if (size != new_size)
                right = right && (matrix(a, i) == 0) == is_zero(method, a, i, size, new_size, antialias);
            }
            CHECK(right);
          }
        }
}

TEST_CASE("resized axes: the weights of mirror images are mirror images") {
  for (const ResizeMethod method : {ResizeMethod::linear, ResizeMethod::cubic})
    for (Index size = 1; size <= 40; ++size)
      for (Index new_size = 1; new_size <= 40; ++new_size) {
        const Matrix<double> matrix = matrix_of(resize_map(size, new_size, method, true));
        const bool same_zeros = ((matrix.array() == 0) == (matrix.reverse().array() == 0)).all();
        CHECK(same_zeros);
        CHECK((matrix - matrix.reverse()).cwiseAbs().maxCoeff() < 1e-15);
      }
}

}  // namespace
}  // namespace widelimit::layers
