#include "widelimit/gp/targets.hpp"

#include <doctest/doctest.h>

#include <limits>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/gp/metrics.hpp"

using namespace widelimit;
using namespace widelimit::gp;

TEST_CASE("targets: centred one-hot rows sum to zero, binary ones have their sign") {
  const std::vector<int> labels = {2, 0};
  const Matrix<double> three{{-1.0 / 3, -1.0 / 3, 2.0 / 3}, {2.0 / 3, -1.0 / 3, -1.0 / 3}};
  CHECK(class_targets(labels, 3) == three);
  CHECK(classes_of(class_targets(labels, 3)) == labels);
  CHECK(binary_targets(std::vector<int>{1, 0}) == Matrix<double>{{0.5}, {-0.5}});
  CHECK(binary_targets(std::vector<int>{0}, 1) == Matrix<double>{{-1.0}});
  CHECK_THROWS_WITH_AS((void)class_targets(labels, 2),
                       "class_targets: labels must be 0 .. 1, but label 0 (from 0) is 2", ArgumentError);
  CHECK_THROWS_WITH_AS((void)class_targets(labels, 1), "class_targets: classes must be at least 2, got 1",
                       ArgumentError);
  CHECK_THROWS_AS((void)binary_targets(std::vector<int>{-1}), ArgumentError);
  CHECK_THROWS_WITH_AS((void)binary_targets(labels, 0),
                       "binary_targets: magnitude must be positive and finite, got 0", ArgumentError);
}

TEST_CASE("targets: rows of any number of classes sum to 0 and differ by 1 from class to class") {
  for (int classes = 2; classes <= 12; ++classes) {
    std::vector<int> labels;
    for (int label = classes - 1; label >= 0; --label) labels.push_back(label);
    const Matrix<double> targets = class_targets(labels, classes);
    CHECK(targets.rowwise().sum().cwiseAbs().maxCoeff() < 1e-15);
    for (int i = 0; i < classes; ++i)
      for (int k = 0; k < classes; ++k) {
        const bool own = labels[static_cast<std::size_t>(i)] == k;
        CHECK(targets(i, k) == doctest::Approx((own ? 1.0 : 0.0) - 1.0 / classes).epsilon(1e-15));
      }
  }
}

TEST_CASE("targets: no labels are no rows; magnitudes that are no numbers are refused") {
  const std::vector<int> none, one = {1};
  CHECK(class_targets(none, 4).rows() == 0);
  CHECK(class_targets(none, 4).cols() == 4);
  CHECK(binary_targets(none).rows() == 0);
  CHECK_THROWS_WITH_AS((void)binary_targets(one, std::numeric_limits<double>::infinity()),
                       "binary_targets: magnitude must be positive and finite, got inf", ArgumentError);
  CHECK_THROWS_WITH_AS((void)binary_targets(one, -0.5),
                       "binary_targets: magnitude must be positive and finite, got -0.5", ArgumentError);
  CHECK_THROWS_WITH_AS((void)binary_targets(std::vector<int>{0, 2}),
                       "binary_targets: labels must be 0 .. 1, but label 1 (from 0) is 2", ArgumentError);
}
