#include "kernel/readouts/position_rotation.hpp"

#include <doctest/doctest.h>

#include "widelimit/numerics/random_stream.hpp"

namespace widelimit {
namespace {

TEST_CASE("rotations of positions leave products of two matrices, and keep means in one number a group") {
  for (const Index d : {Index{1}, Index{7}, Index{32}, Index{33}, Index{256}, Index{300}}) {
    CAPTURE(d);
    numerics::RandomStream random(3);
    const auto normals = [&](Index columns) {
      return Matrix<float>(
          Matrix<double>::NullaryExpr(d, columns, [&] { return random.normal(); }).cast<float>());
    };
    const Matrix<float> left = normals(70), right = normals(5);
    Matrix<float> turned_left = left, turned_right = right, across = right.transpose();
    rotate_rows(turned_left.data(), d, 70);
    rotate_rows(turned_right.data(), d, 5);
    rotate_columns(across.data(), 5, d);
    CHECK(across == turned_right.transpose());
    const Matrix<double> expected = left.cast<double>().transpose() * right.cast<double>(),
                         product = turned_left.cast<double>().transpose() * turned_right.cast<double>();
    CHECK((product - expected).cwiseAbs().maxCoeff() < 1e-6 * static_cast<double>(d));
    Matrix<float> constant = Matrix<float>::Constant(d, 1, 0.3F);
    rotate_rows(constant.data(), d, 1);
    CHECK((constant.array().abs() > 1e-6F).count() <= 2);
  }
}

TEST_CASE("rotations spread single positions over numbers of different size") {
  constexpr Index d = 256;
  Matrix<float> unit = Matrix<float>::Zero(d, 1);
  unit(77, 0) = 1;
  rotate_rows(unit.data(), d, 1);
  CHECK((unit.array() != 0).count() > d / 2);
  CHECK(unit.cwiseAbs().maxCoeff() < 0.5F);
  CHECK(unit.cwiseAbs().maxCoeff() > 2 * unit.cwiseAbs().mean());
}

}  // namespace
}  // namespace widelimit
