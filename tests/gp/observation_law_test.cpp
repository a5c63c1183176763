#include "widelimit/gp/observation_law.hpp"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

#include "widelimit/error.hpp"
#include "widelimit/gp/inference.hpp"
#include "widelimit/gp/prediction_quality.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using doctest::Approx;

TEST_CASE("observation law: Student's t distribution of scipy 1.16") {
  const ObservationLaw standardised = ObservationLaw::of_fitted_amplitude(8, true);
  CHECK(standardised.degrees_of_freedom == 7);
  CHECK(standardised.scale == std::sqrt(8.0 / 7));
  const std::array<double, 3> widths{0.7602425391437919, 2.0253897235882548, 2.527889656547698};
  for (std::size_t k = 0; k < 3; ++k)
    CHECK(standardised.half_width(interval_percents[k] / 100.0) == Approx(widths[k]).epsilon(1e-13));
  CHECK(standardised.log_density(1.3) == Approx(-1.787911383774993).epsilon(1e-13));
  CHECK(standardised.probability_within(-1.3) == Approx(0.7366184070843791).epsilon(1e-13));

  const ObservationLaw as_they_are = ObservationLaw::of_fitted_amplitude(3, false);
  CHECK(as_they_are == ObservationLaw{3, 1});
  CHECK(as_they_are.half_width(0.95) == Approx(3.1824463052837078).epsilon(1e-13));
  CHECK(as_they_are.log_density(-1.3) == Approx(-1.8945294372036665).epsilon(1e-13));
}

TEST_CASE("observation law: normal without a fitted amplitude, and in the limit of many rows") {
  const ObservationLaw normal;
  CHECK(normal.is_normal());
  for (const int percent : interval_percents) {
    const double share = percent / 100.0;
    CHECK(std::erf(normal.half_width(share) / std::sqrt(2.0)) == Approx(share).epsilon(1e-14));
    CHECK(normal.probability_within(normal.half_width(share)) == Approx(share).epsilon(1e-14));
  }
  const ObservationLaw many = ObservationLaw::of_fitted_amplitude(1'000'000'000, true);
  CHECK_FALSE(many.is_normal());
  for (const double deviations : {0.0, 0.7, 3.0, 6.0}) {
    CHECK(many.log_density(deviations) == Approx(normal.log_density(deviations)).epsilon(1e-6));
    CHECK(many.probability_within(deviations) == Approx(normal.probability_within(deviations)).epsilon(1e-8));
  }
}

TEST_CASE("observation law: intervals hold what they say, and densities are their slope") {
  for (const Index rows : {2, 3, 12, 500}) {
    const ObservationLaw law = ObservationLaw::of_fitted_amplitude(rows, true);
    for (const double share : {0.01, 0.5, 0.95, 0.999})
      CHECK(law.probability_within(law.half_width(share)) == Approx(share).epsilon(1e-12));
    constexpr double place = 0.8, step = 1e-5;
    const double slope =
        (law.probability_within(place + step) - law.probability_within(place - step)) / (2 * step);
    CHECK(2 * std::exp(law.log_density(place)) == Approx(slope).epsilon(1e-8));
  }
}

TEST_CASE("observation law: what has no law is refused") {
  CHECK_THROWS_AS((void)ObservationLaw::of_fitted_amplitude(1, true), ArgumentError);
  CHECK(ObservationLaw::of_fitted_amplitude(1, false).degrees_of_freedom == 1);
  for (const double share : {0.0, 1.0, -1.0, std::nan("")})
    CHECK_THROWS_AS((void)ObservationLaw{}.half_width(share), ArgumentError);
}

TEST_CASE("observation law: tails of distances that were left out") {
  // Quantiles of Student's t distribution of 4 degrees, times .7, and of the normal distribution.
  const ObservationLaw heavy{4, 0.7}, normal;
  constexpr Index count = 400;
  Vector<double> of_heavy(count), of_normal(count);
  for (Index i = 0; i < count; ++i) {
    const double share = (2 * static_cast<double>(i) + 1) / count - 1;
    const double side = share < 0 ? -1 : 1;
    of_heavy(i) = side * heavy.half_width(std::abs(share));
    of_normal(i) = side * normal.half_width(std::abs(share));
  }
  const ObservationLaw found = ObservationLaw::of_left_out(of_heavy);
  CHECK(found.degrees_of_freedom == Approx(4).epsilon(0.2));
  CHECK(found.scale == Approx(0.7).epsilon(0.05));
  // Units come out again, and signs do not matter.
  CHECK(ObservationLaw::of_left_out(-10 * of_heavy).scale == Approx(10 * found.scale).epsilon(1e-6));
  const ObservationLaw light = ObservationLaw::of_left_out(of_normal);
  CHECK(light.degrees_of_freedom == count - 1);
  CHECK(light.scale == Approx(1).epsilon(0.02));
  CHECK_THROWS_AS(static_cast<void>(ObservationLaw::of_left_out(Vector<double>::Ones(3))), ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(ObservationLaw::of_left_out(Vector<double>::Zero(9))), ArgumentError);
  // Mostly zeros have no scale that says anything of the others: the distribution of the most degrees is left.
  Vector<double> zeros = Vector<double>::Zero(20);
  zeros(3) = 1;
  CHECK(ObservationLaw::of_left_out(zeros).degrees_of_freedom == 19);
}
