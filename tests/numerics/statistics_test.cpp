#include "widelimit/numerics/statistics.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

using namespace widelimit::numerics;
using doctest::Approx;
using widelimit::ArgumentError;

namespace {

std::vector<double> normals(int count, std::uint64_t seed, double shift = 0) {
  RandomStream stream(seed);
  std::vector<double> sample(static_cast<std::size_t>(count));
  for (double& x : sample) x = stream.normal() + shift;
  return sample;
}

double normal_distribution(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }

}  // namespace

TEST_CASE("statistics: mean, variance and their errors on a sample worked by hand") {
  const std::vector<double> sample{1, 2, 4, 5};
  CHECK(mean(sample).value == 3);
  CHECK(variance(sample).value == Approx(10.0 / 3));
  CHECK(mean(sample).standard_error == Approx(std::sqrt(10.0 / 12)));
  // Fourth central moment 34 / 4 against the squared variance 100 / 9.
  CHECK(variance(sample).standard_error == 0);
  CHECK(variance(std::vector<double>{0, 0, 0, 4}).standard_error == Approx(std::sqrt((21.0 - 16.0) / 4)));
}

TEST_CASE("statistics: quantiles interpolate, and their errors are those of the distribution") {
  const std::vector<double> sample{0, 10, 20, 30};
  CHECK(quantile(sample, 0).value == 0);
  CHECK(quantile(sample, 1).value == 30);
  CHECK(quantile(sample, 0.5).value == 15);
  CHECK(quantile(sample, 0.1).value == Approx(3));
  const std::vector<double> ascending = sorted(normals(40'000, 3));
  const Estimate median = quantile(ascending, 0.5);
  CHECK(std::abs(median.value) < 4 * median.standard_error);
  // sqrt(1/4 / N) over the density 1 / sqrt(2 pi); the estimate itself varies by some percent.
  CHECK(median.standard_error == Approx(std::sqrt(2 * 3.14159265 / 4 / 40'000)).scale(0).epsilon(0.15));
}

TEST_CASE("statistics: standard errors of means, variances and quantiles are the scatter of repetitions") {
  // 800 samples of 400 numbers: the scatter over them is known to 2.5 %, and an interval of one standard
  // error holds 68 % of the estimates, within 1.7 %.
  constexpr int repetitions = 800, size = 400;
  struct Checked {
    std::string name;
    double truth;
    std::function<Estimate(const std::vector<double>&)> estimate;
  };
  const auto quantile_at = [](double p) {
    return [p](const std::vector<double>& sample) { return quantile(sorted(sample), p); };
  };
  const std::vector<Checked> list{
      {"mean", 0, [](const std::vector<double>& sample) { return mean(sample); }},
      {"variance", 1, [](const std::vector<double>& sample) { return variance(sample); }},
      {"median", 0, quantile_at(0.5)},
      {"10 %", -1.2815515655446004, quantile_at(0.1)},
      {"95 %", 1.6448536269514722, quantile_at(0.95)}};
  for (const Checked& checked : list) {
    double inside = 0, squares = 0, claimed = 0;
    for (int k = 0; k < repetitions; ++k) {
      const Estimate estimate = checked.estimate(normals(size, 1000 + static_cast<std::uint64_t>(k)));
      const double error = estimate.value - checked.truth;
      squares += error * error / repetitions;
      claimed += estimate.standard_error / repetitions;
      if (std::abs(error) < estimate.standard_error) inside += 1.0 / repetitions;
    }
    CAPTURE(checked.name);
    CHECK(claimed / std::sqrt(squares) == Approx(1).scale(0).epsilon(0.06));
    CHECK(inside == Approx(0.68).scale(0).epsilon(0.04));
  }
}

TEST_CASE("statistics: Kolmogorov-Smirnov distances, ties and all") {
  CHECK(kolmogorov_smirnov_distance(std::vector<double>{1, 2, 3}, std::vector<double>{1, 2, 3}) == 0);
  CHECK(kolmogorov_smirnov_distance(std::vector<double>{1, 2}, std::vector<double>{3, 4, 5}) == 1);
  CHECK(kolmogorov_smirnov_distance(std::vector<double>{1, 1, 1, 2}, std::vector<double>{1, 2, 2, 2}) == 0.5);
  const auto uniform = [](double x) { return std::clamp(x, 0.0, 1.0); };
  CHECK(kolmogorov_smirnov_distance(std::vector<double>{0.25, 0.75}, uniform) == 0.25);
  CHECK(kolmogorov_smirnov_distance(std::vector<double>{0.9}, uniform) == 0.9);
}

TEST_CASE("statistics: Kolmogorov's tail has its tabulated values and no seam at 1") {
  CHECK(kolmogorov_tail(0) == 1);
  CHECK(kolmogorov_tail(1.3580986393225505) == Approx(0.05).scale(0).epsilon(1e-10));
  CHECK(kolmogorov_tail(1.6276236115189503) == Approx(0.01).scale(0).epsilon(1e-10));
  CHECK(kolmogorov_tail(0.8275735551899077) == Approx(0.5).scale(0).epsilon(1e-10));
  CHECK(std::abs(kolmogorov_tail(1) - kolmogorov_tail(std::nextafter(1.0, 0.0))) < 1e-15);
  CHECK(kolmogorov_tail(0.1) == 1);
}

TEST_CASE("statistics: the test accepts equal distributions and rejects a shift of a tenth") {
  const std::vector<double> a = normals(4'000, 1), b = normals(6'000, 2), shifted = normals(6'000, 2, 0.1);
  const double size = two_sample_effective_size(a.size(), b.size());
  CHECK(size == 2'400);
  CHECK(kolmogorov_smirnov_p_value(kolmogorov_smirnov_distance(a, b), size) > 0.01);
  CHECK(kolmogorov_smirnov_p_value(kolmogorov_smirnov_distance(a, shifted), size) < 1e-3);
  CHECK(kolmogorov_smirnov_p_value(kolmogorov_smirnov_distance(a, normal_distribution), 4'000) > 0.01);
  CHECK(kolmogorov_smirnov_p_value(kolmogorov_smirnov_distance(shifted, normal_distribution), 6'000) < 1e-6);
}

TEST_CASE("statistics: a p-value is uniform under equal distributions") {
  int below_tenth = 0;
  const int repeats = 1'000;
  for (int k = 0; k < repeats; ++k) {
    const double distance =
        kolmogorov_smirnov_distance(normals(50, 100 + static_cast<std::uint64_t>(k)), normal_distribution);
    below_tenth += kolmogorov_smirnov_p_value(distance, 50) < 0.1 ? 1 : 0;
  }
  // Binomial error and the documented 0.01.
  CHECK(std::abs(below_tenth / 1'000.0 - 0.1) < 0.01 + 4 * std::sqrt(0.09 / repeats));
}

TEST_CASE("statistics: a kernel density has mass one and approaches the density") {
  const KernelDensity density(normals(20'000, 5));
  double mass = 0;
  for (int i = -800; i <= 800; ++i) mass += 0.01 * density(0.01 * i);
  CHECK(mass == Approx(1).scale(0).epsilon(1e-10));
  for (const double x : {-1.0, 0.0, 0.7})
    CHECK(density(x) ==
          Approx(std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979)).scale(0).epsilon(0.05));
  const KernelDensity point(std::vector<double>{2.0}, 0.5);
  CHECK(point(2) == Approx(1 / (0.5 * std::sqrt(2 * 3.14159265358979))));
  CHECK(point(100) == 0);
}

TEST_CASE("statistics: the interval of a probability") {
  // Wilson's score for 10 of 100: (0.055229, 0.174366).
  const ProbabilityInterval ten = binomial_interval(10, 100);
  CHECK(ten.lower == Approx(0.0552291).scale(0).epsilon(1e-5));
  CHECK(ten.upper == Approx(0.1743657).scale(0).epsilon(1e-5));
  const ProbabilityInterval none = binomial_interval(0, 50), all = binomial_interval(50, 50);
  CHECK(none.lower == 0);
  CHECK(none.upper == Approx(3.8415 / (50 + 3.8415)).scale(0).epsilon(1e-4));
  CHECK(all.upper == 1);
  CHECK(all.lower == Approx(1 - none.upper));
  CHECK_THROWS_AS((void)binomial_interval(3, 2), ArgumentError);
  CHECK_THROWS_AS((void)binomial_interval(0, 0), ArgumentError);
}

TEST_CASE("statistics: errors say what is wrong with a sample") {
  CHECK_THROWS_WITH_AS((void)mean(std::vector<double>{1}), "mean: a sample needs at least 2 values, got 1",
                       ArgumentError);
  CHECK_THROWS_WITH_AS((void)sorted(std::vector<double>{1, NAN}),
                       "sorted: a sample must not hold NaN, got one at 1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)quantile(std::vector<double>{1, 2}, 1.5),
                       "quantile: p must lie in [0, 1], got 1.5", ArgumentError);
  CHECK_THROWS_WITH_AS((void)kolmogorov_smirnov_p_value(2, 10),
                       "kolmogorov_smirnov_p_value: distance must lie in [0, 1], got 2", ArgumentError);
  CHECK_THROWS_WITH_AS(
      (void)KernelDensity(std::vector<double>{1, 1}),
      "KernelDensity: the sample must not be constant; give a bandwidth to smooth it nevertheless",
      ArgumentError);
  CHECK_THROWS_WITH_AS((void)KernelDensity(std::vector<double>{1, 2}, 0),
                       "KernelDensity: bandwidth must be positive, got 0", ArgumentError);
}
