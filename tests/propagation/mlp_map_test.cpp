#include "widelimit/propagation/mlp_map.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numbers>

#include "widelimit/error.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

using namespace widelimit;
using namespace widelimit::propagation;
using doctest::Approx;

namespace {

// One nonlinearity and unit output gain: outputs are the Gaussian expectations themselves.
MlpMap single(const numerics::ActivationPtr& activation, double variance) {
  Parameters parameters;
  parameters.activation = activation;
  parameters.sigma_w = std::sqrt(variance);
  parameters.mlp_depth = 1;
  return MlpMap(parameters);
}

struct Moments {
  double square, product, slope, other_slope;
};

Moments moments(const numerics::ActivationPtr& activation, double variance, double correlation) {
  const MlpMap map = single(activation, variance);
  const double k_out = map.statistics().k_out;
  return {k_out, k_out - map.output_gap(1 - correlation), map.slope(0) / variance,
          map.slope(1 - correlation) / variance};
}

/// The note's rule for tanh: E phi^2 - E phi phi' = E (phi(u) - phi(v))^2 / 2 by the trapezium rule, with
/// tanh u - tanh v = tanh(u - v) (1 - tanh u tanh v).
double tanh_gap_by_trapezium(double variance, double gap) {
  const double root = std::sqrt(variance), a = std::sqrt(1 - gap / 2), b = std::sqrt(gap / 2);
  const double h = std::min(0.25, 0.2 / root);
  const int count = static_cast<int>(9 / h);
  double sum = 0;
  for (int i = -count; i <= count; ++i)
    for (int j = -count; j <= count; ++j) {
      const double s = i * h, t = j * h, u = root * (a * s + b * t), v = root * (a * s - b * t);
      const double difference = std::tanh(2 * root * b * t) * (1 - std::tanh(u) * std::tanh(v));
      sum += std::exp(-(s * s + t * t) / 2) * difference * difference;
    }
  return sum * h * h / (4 * std::numbers::pi);
}

}  // namespace

TEST_CASE("mlp map: Gaussian moments of the note's table") {
  const Moments tanh1 = moments(numerics::tanh(), 1, 0);
  CHECK(tanh1.square == Approx(0.394294490398).scale(0).epsilon(1e-11));
  CHECK(tanh1.slope == Approx(0.464402902448).scale(0).epsilon(1e-11));
  CHECK(single(numerics::tanh(), 1).curvature() == Approx(0.300203812004).scale(0).epsilon(1e-11));
  const Moments tanh4 = moments(numerics::tanh(), 4, 0.9);
  CHECK(tanh4.product == Approx(0.544248308012).scale(0).epsilon(1e-11));
  CHECK(tanh4.other_slope == Approx(0.206047171607).scale(0).epsilon(1e-11));
  const Moments tanh25 = moments(numerics::tanh(), 25, 0.7);
  CHECK(tanh25.product == Approx(0.474271065817).scale(0).epsilon(1e-11));
  CHECK(tanh25.other_slope == Approx(0.033560448701).scale(0).epsilon(1e-10));
  const Moments erf1 = moments(numerics::erf(), 1, 0.5);
  CHECK(erf1.square == Approx(0.464559054398).scale(0).epsilon(1e-11));
  CHECK(erf1.slope == Approx(0.569410034734).scale(0).epsilon(1e-11));
  CHECK(erf1.product == Approx(0.216346895939).scale(0).epsilon(1e-11));
  CHECK(erf1.other_slope == Approx(0.450158158079).scale(0).epsilon(1e-11));
  const Moments relu3 = moments(numerics::relu(), 3, 0.9);
  CHECK(relu3.product == Approx(1.36430759827).scale(0).epsilon(1e-11));
  CHECK(relu3.other_slope == Approx(0.428216853436).scale(0).epsilon(1e-11));
}

TEST_CASE("mlp map: output variance and slope of the note's table") {
  Parameters parameters;
  parameters.sigma_w = 1;
  CHECK(mlp_statistics(parameters).k_out == Approx(0.236450410499).scale(0).epsilon(1e-11));
  CHECK(mlp_statistics(parameters).f == Approx(0.295613142351).scale(0).epsilon(1e-11));
  parameters.sigma_w = 2.25;
  CHECK(mlp_statistics(parameters).k_out == Approx(0.609445164461).scale(0).epsilon(1e-11));
  CHECK(mlp_statistics(parameters).f == Approx(1.62245496091).scale(0).epsilon(1e-11));
  parameters.sigma_out = OutputGain::shared();
  CHECK(mlp_statistics(parameters).k_out == Approx(3.08531614508).scale(0).epsilon(1e-11));
  CHECK(mlp_statistics(parameters).f == Approx(8.2136782396).scale(0).epsilon(1e-11));
  parameters.sigma_out = OutputGain::fixed(2.25);
  CHECK(mlp_statistics(parameters).f == Approx(8.2136782396).scale(0).epsilon(1e-11));
}

TEST_CASE("mlp map: gaps keep their digits at any angle, across the switch to the table at 0.05") {
  for (const double variance : {0.25, 4.0, 25.0}) {
    const MlpMap map = single(numerics::tanh(), variance);
    for (const double gap : {1e-12, 1e-8, 1e-3, 0.049999, 0.05, 0.050001, 0.5, 1.0, 1.7}) {
      CAPTURE(variance);
      CAPTURE(gap);
      CHECK(map.output_gap(gap) == Approx(tanh_gap_by_trapezium(variance, gap)).scale(0).epsilon(1e-10));
    }
  }
  const MlpMap erf = single(numerics::erf(), 2);
  for (const double gap : {1e-9, 1e-4, 0.04, 0.3}) {
    // arcsin x - arcsin y with both arguments' difference known exactly.
    const double x = 0.8, y = 0.8 * (1 - gap);
    const double difference =
        std::asin(0.8 * gap * (x + y) / (x * std::sqrt(1 - y * y) + y * std::sqrt(1 - x * x)));
    CHECK(erf.output_gap(gap) == Approx(2 / std::numbers::pi * difference).scale(0).epsilon(1e-11));
  }
}

TEST_CASE("mlp map: the slope is the derivative of the output covariance") {
  for (const auto& activation : {numerics::tanh(), numerics::gelu(), numerics::relu()}) {
    Parameters parameters;
    parameters.activation = activation;
    parameters.sigma_w = 1.3;
    parameters.mlp_depth = 3;
    const MlpMap map(parameters);
    for (const double gap : {0.01, 0.2, 0.9, 1.5}) {
      const double step = 1e-4 * gap;
      CHECK((map.output_gap(gap + step) - map.output_gap(gap - step)) / (2 * step) ==
            Approx(map.slope(gap)).scale(0).epsilon(1e-6));
    }
    CHECK(map.slope(0) == Approx(map.statistics().f).scale(0).epsilon(1e-12));
  }
}

TEST_CASE("mlp map: curvature is the second derivative at equal inputs, and needs a smooth slope") {
  Parameters parameters;
  parameters.sigma_w = 1.8;
  const MlpMap map(parameters);
  const double gap = 1e-4;
  // slope(gap) = f - f_2 gap + O(gap^2)
  CHECK((4 * map.slope(gap / 2) - map.slope(gap) - 3 * map.slope(0)) / -gap ==
        Approx(map.curvature()).scale(0).epsilon(1e-5));
  CHECK(single(numerics::erf(), 1).curvature() ==
        Approx(16 / std::numbers::pi * std::pow(5, -1.5)).scale(0).epsilon(1e-10));
  CHECK(single(numerics::identity(), 1).curvature() == Approx(0).scale(1e-10));
  CHECK_THROWS_WITH_AS((void)single(numerics::relu(), 1).curvature(),
                       doctest::Contains("phi' must be smooth"), NumericalError);
}

TEST_CASE("mlp map: a function of one's own is as good as a built-in one") {
  Parameters parameters;
  parameters.sigma_w = 1.5;
  parameters.activation = numerics::quadrature_activation(
      [](double x) { return std::erf(x); },
      [](double x) { return 2 / std::sqrt(std::numbers::pi) * std::exp(-x * x); });
  const MlpMap own(parameters);
  parameters.activation = numerics::erf();
  const MlpMap closed(parameters);
  for (const double gap : {1e-6, 0.03, 0.4})
    CHECK(own.output_gap(gap) == Approx(closed.output_gap(gap)).scale(0).epsilon(1e-10));
  CHECK(own.statistics().f == Approx(closed.statistics().f).scale(0).epsilon(1e-10));
}

TEST_CASE("mlp map: constant inputs and wrong parameters") {
  Parameters parameters;
  parameters.sigma_w = 0;
  CHECK(MlpMap(parameters).output_gap(0.3) == 0);
  const auto message = [](const Parameters& wrong, const char* text) {
    CHECK_THROWS_WITH_AS((MlpMap(wrong)), text, ArgumentError);
  };
  parameters.sigma_w = -1;
  message(parameters, "MlpMap: sigma_w must be at least 0 and finite, got -1");
  parameters = {};
  parameters.sigma_out = OutputGain::fixed(-0.5);
  message(parameters, "MlpMap: sigma_out must be at least 0 and finite, got -0.5");
  parameters = {};
  parameters.mlp_depth = 0;
  message(parameters, "MlpMap: mlp_depth must be at least 1, got 0");
  parameters = {};
  parameters.activation = nullptr;
  message(parameters, "MlpMap: activation must be given, got none");
  parameters.activation = numerics::sign();
  CHECK_THROWS_WITH_AS((MlpMap(parameters)), doctest::Contains("activation must be continuous"),
                       ArgumentError);
}
