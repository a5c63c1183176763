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
