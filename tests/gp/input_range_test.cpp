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

TEST_CASE(
    "lost in float: numbers out of its range, inputs and channels that vanish, differences in training") {
  const auto lost = [](const Matrix<double>& x, bool is_training = false) {
    const auto found = lost_in_float(Inputs<double>(x), is_training);
    return found ? found->text.substr(0, found->text.find(':')) : std::string();
  };
  CHECK(lost(Matrix<double>{{1.0, 1e-60}, {2.0, 1.0}}).empty());
  CHECK(lost(Matrix<double>{{0.0, 0.0}, {0.0, 1.0}}).empty());
  CHECK(lost(Matrix<double>{{1.0, -2e39}}) == "-2e+39 is beyond the range of float");
  CHECK(lost(Matrix<double>{{1.0, 1.0}, {0.0, 1e-60}}) == "all numbers are rounded to 0 in float");
  CHECK(lost_in_float(Inputs<double>(Matrix<double>{{1.0, 1.0}, {0.0, 1e-60}}), false)->input == 1);
  CHECK(lost(Matrix<double>{{1.0, 1e-60}, {1.0, 2e-60}}) ==
        "all numbers of channel 1 (from 0) are rounded to 0 in float");
  const Matrix<double> shifted{{1.0, 1e9}, {2.0, 1e9 + 1}};
  CHECK(lost(shifted).empty());
  CHECK(lost(shifted, true) == "the numbers of channel 1 (from 0) differ, and are rounded to one in float");
}
