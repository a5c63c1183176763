#include "widelimit/gp/input_range.hpp"

#include <doctest/doctest.h>

#include "gp/problem.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::gp_test::random_matrix;

namespace {

std::string warning_of(const Matrix<double>& train, const Matrix<double>& x) {
  return range_warning(Inputs<double>(train), Inputs<double>(x), Preprocessing());
}

}  // namespace

TEST_CASE("range warning: ten times as far from the middle as the ends of the training range") {
  const Matrix<double> train{{0.0}, {1.0}};
  CHECK(warning_of(train, Matrix<double>{{5.5}}).empty());
  CHECK(warning_of(train, Matrix<double>{{-4.5}}).empty());
  const std::string far = warning_of(train, Matrix<double>{{5.6}, {2.0}});
  CHECK(far ==
        "the numbers of the inputs run from 2 to 5.6, those of the training inputs from 0 to 1: are both "
        "scaled "
        "alike?");
  CHECK_FALSE(warning_of(train, Matrix<double>{{-4.6}}).empty());
}

TEST_CASE("range warning: small numbers are told of images, not of tables") {
  const Matrix<double> train = random_matrix(4, 12, 1), small = train / 100;
  CHECK(warning_of(train, small).empty());
  const Inputs<double> images(train.data(), {4, 2, 2, 3}), dark(small.data(), {4, 2, 2, 3});
  CHECK_FALSE(range_warning(images, dark, Preprocessing()).empty());
  const Matrix<float> black = Matrix<float>::Zero(4, 12);
  CHECK(range_warning(images, Inputs<float>(black.data(), {4, 2, 2, 3}), Preprocessing()).empty());
}
