#include "widelimit/gp/prediction_quality.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/gp/calibration.hpp"
#include "widelimit/gp/metrics.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using doctest::Approx;

namespace {

// With the scores that scikit-learn 1.9.1 gives them.
const Matrix<double> some_probabilities{{.7, .2, .1},   {.1, .6, .3},   {.3, .3, .4}, {.2, .5, .3},
                                        {.05, .05, .9}, {.4, .35, .25}, {.1, .8, .1}, {.0, .2, .8}};
const std::vector<int> some_labels{0, 1, 2, 2, 2, 1, 1, 0};

}  // namespace

TEST_CASE("prediction quality: classes have the scores of scikit-learn") {
  const ClassesQuality quality = classes_quality(some_probabilities, some_labels);
  CHECK(quality.accuracy == 5.0 / 8);
  CHECK(quality.log_loss == Approx(5.051217960561585).epsilon(1e-13));
  CHECK(quality.brier_score == Approx(0.515).epsilon(1e-13));
  CHECK(quality.area_under_curve.value() == Approx(0.7555555555555555).epsilon(1e-13));
  const std::vector<double> areas{0.5, 0.9333333333333333, 0.8333333333333333},
      recalls{0.5, 2.0 / 3, 2.0 / 3};
  REQUIRE(quality.classes.size() == 3);
  for (std::size_t c = 0; c < 3; ++c) {
    CHECK(quality.classes[c].area_under_curve.value() == Approx(areas[c]).epsilon(1e-13));
    CHECK(quality.classes[c].recall.value() == Approx(recalls[c]).epsilon(1e-13));
    CHECK(quality.classes[c].mean_probability ==
          Approx(some_probabilities.col(static_cast<Index>(c)).mean()).epsilon(1e-13));
  }
  CHECK(quality.classes[0].inputs == 2);
  CHECK(quality.classes[1].share == 3.0 / 8);
  CHECK(quality.expected_calibration_error == calibration(some_probabilities, some_labels).expected_error);
}

TEST_CASE("prediction quality: calibration of a class by hand; bins hold their upper ends") {
  // Bins of width 1/15: 0.2 and 0.4 end theirs, 0.19 and 0.2 share one.
  const Matrix<double> probabilities{{.2, .8}, {.19, .81}, {.4, .6}, {1, 0}};
  const ClassesQuality quality = classes_quality(probabilities, std::vector<int>{0, 1, 1, 0});
  CHECK(quality.classes[0].calibration_error == Approx((std::abs(.39 - 1) + .4 + 0) / 4).epsilon(1e-13));
}

TEST_CASE("prediction quality: a class that does not occur has no recall and no area") {
  const ClassesQuality quality =
      classes_quality(Matrix<double>{{.5, .3, .2}, {.2, .6, .2}}, std::vector<int>{0, 1});
  CHECK_FALSE(quality.classes[2].recall);
  CHECK_FALSE(quality.classes[2].area_under_curve);
  CHECK(quality.area_under_curve == 1);
  const ClassesQuality single = classes_quality(Matrix<double>{{.5, .5}}, std::vector<int>{1});
  CHECK_FALSE(single.area_under_curve);
  CHECK(single.brier_score == 0.5);
  CHECK_THROWS_AS((void)classes_quality(some_probabilities, std::vector<int>{0}), ArgumentError);
}

TEST_CASE("prediction quality: equal scores count half, infinite ones are scores") {
  const std::vector<double> scores{1, 1, HUGE_VAL, -HUGE_VAL};
  CHECK(area_under_curve(scores, {true, false, true, false}) == (0.5 + 1 + 1 + 1) / 4);
  CHECK_FALSE(area_under_curve(scores, {true, true, true, true}));
  CHECK_THROWS_AS((void)area_under_curve(scores, {true}), ArgumentError);
  CHECK_THROWS_AS((void)area_under_curve(std::vector<double>{std::nan("")}, {true}), ArgumentError);
}

TEST_CASE("prediction quality: numbers, R2 as scikit-learn has it, and coverage by hand") {
  const Matrix<double> mean{{1.2}, {1.7}, {3.0}, {1.0}}, targets{{1.0}, {2.0}, {3.5}, {0.5}};
  const Matrix<double> variances{{0.04}, {0.0225}, {0.0625}, {1.0}};  // 1, 2, 2 and 1/2 deviations
  const NumbersQuality quality = numbers_quality(mean, variances, targets);
  CHECK(quality.determination.value() == Approx(0.88).epsilon(1e-13));
  CHECK(quality.coverage == std::array<double, 3>{0.25, 0.5, 0.5});
  CHECK(quality.mean_squared_error == mean_squared_error(mean, targets));
  CHECK(quality.negative_log_predictive_density == negative_log_predictive_density(mean, variances, targets));
  CHECK_FALSE(numbers_quality(mean, variances, Matrix<double>::Constant(4, 1, 0.1)).determination);
  // Of two outputs the mean: the second one is predicted exactly.
  Matrix<double> means(4, 2), both(4, 2);
  means << mean, targets;
  both << targets, targets;
  CHECK(numbers_quality(means, Matrix<double>::Ones(4, 2), both).determination.value() ==
        Approx(0.94).epsilon(1e-13));
}

TEST_CASE("prediction quality: intervals and densities are those of the law") {
  // 1, 2, 2 and 1/2 deviations; 50 % of Student's t with 3 degrees of freedom are within 0.76 of them, 90 % in 2.35.
  const Matrix<double> mean{{1.2}, {1.7}, {3.0}, {1.0}}, targets{{1.0}, {2.0}, {3.5}, {0.5}};
  const Matrix<double> variances{{0.04}, {0.0225}, {0.0625}, {1.0}};
  const ObservationLaw law{3, 1};
  const NumbersQuality quality = numbers_quality(mean, variances, targets, law);
  CHECK(quality.coverage == std::array<double, 3>{0.25, 1, 1});
  double sum = 0;
  for (Index i = 0; i < 4; ++i)
    sum += 0.5 * std::log(variances(i, 0)) -
           law.log_density((mean(i, 0) - targets(i, 0)) / std::sqrt(variances(i, 0)));
  CHECK(quality.negative_log_predictive_density == Approx(sum / 4).epsilon(1e-13));
  CHECK(prediction_quality(mean, variances, {}, targets, law).numbers->coverage == quality.coverage);
  // Two outputs: the sum of their densities, also where they share variances.
  const Matrix<double> twice = mean.replicate(1, 2);
  CHECK(negative_log_predictive_density(twice, variances.replicate(1, 2), targets.replicate(1, 2), law) ==
        Approx(sum / 2).epsilon(1e-13));
}
