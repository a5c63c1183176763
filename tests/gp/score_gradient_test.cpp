// Derivatives of evidence and leave-one-out by numbers of networks, against differences of refits.
#include "widelimit/gp/score_gradient.hpp"

#include <doctest/doctest.h>

#include "gp/problem.hpp"
#include "numerics/central_slope.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/kernels.hpp"
#include "widelimit/network/network_numbers.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const Network network({layers::dense({.weight_variance = 1.6, .bias_variance = 0.2}), layers::erf(1, 0.9),
                       layers::dense({.weight_variance = 1.1})});

double score_of(const Network& changed, const Matrix<double>& x, const Matrix<double>& y, const Noise& noise,
                Criterion criterion) {
  const Regression regression = Regression::fit(gram<double>(changed, x).nngp, y, noise);
  return criterion == Criterion::evidence ? regression.log_marginal_likelihood()
                                          : regression.leave_one_out().negative_log_predictive_density();
}

}  // namespace

TEST_CASE("score gradient: variances, biases and slopes, for both kinds of noise and both criteria") {
  const Matrix<double> x = random_matrix(14, 3, 1), y = random_matrix(14, 2, 2);
  const std::vector<std::string> numbers{"layers[0].weight_variance", "layers[0].bias_variance",
                                         "layers[1].b"};
  for (const Noise& noise : {Noise(RelativeRegulariser(0.1)), Noise(AbsoluteNoise(0.05))})
    for (const Criterion criterion : {Criterion::evidence, Criterion::leave_one_out}) {
      const auto gradient = score_gradient<double>(network, x, y, noise, criterion, numbers);
      REQUIRE(gradient.size() == numbers.size());
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const NetworkNumbers number(network, {numbers[i]});
        const double slope = numerics::central_slope(
            [&](double shift) {
              return score_of(number.with({number.values().front() + shift}), x, y, noise, criterion);
            },
            0.01);
        CHECK(std::abs(slope) > 1e-3);
        CHECK(gradient[i] == Approx(slope).epsilon(1e-7));
      }
    }
}

TEST_CASE("score gradient: float, and criteria without derivatives") {
  const Matrix<double> x = random_matrix(20, 3, 3), y = random_matrix(20, 1, 4);
  const Matrix<float> rounded = x.cast<float>();
  const std::vector<std::string> numbers{"layers[0].weight_variance"};
  const double exact =
      score_gradient<double>(network, x, y, RelativeRegulariser(0.1), Criterion::evidence, numbers).front();
  CHECK(score_gradient<float>(network, rounded, y, RelativeRegulariser(0.1), Criterion::evidence, numbers)
            .front() == Approx(exact).epsilon(1e-3));
  CHECK_THROWS_WITH_AS(static_cast<void>(score_gradient<double>(network, x, y, RelativeRegulariser(0.1),
                                                                Criterion::accuracy, numbers)),
                       "score_gradient: only evidence and leave_one_out have derivatives here",
                       ArgumentError);
}
