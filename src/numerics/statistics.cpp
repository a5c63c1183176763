#include "widelimit/numerics/statistics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "widelimit/error.hpp"

namespace widelimit::numerics {

namespace {

void require_sample(std::string_view where, std::span<const double> sample, std::size_t least) {
  if (sample.size() < least)
    throw ArgumentError(
        fmt::format("{}: a sample needs at least {} values, got {}", where, least, sample.size()));
  for (std::size_t i = 0; i < sample.size(); ++i)
    if (std::isnan(sample[i]))
      throw ArgumentError(fmt::format("{}: a sample must not hold NaN, got one at {}", where, i));
}

double mean_value(std::span<const double> sample) {
  double sum = 0;
  for (const double x : sample) sum += x;
  return sum / static_cast<double>(sample.size());
}

/// Linear interpolation between order statistics: p = 0 is the smallest value, p = 1 the largest.
double interpolated(std::span<const double> ascending, double p) {
  const double position = std::clamp(p, 0.0, 1.0) * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  const double weight = position - static_cast<double>(below);
  return weight == 0 ? ascending[below] : ascending[below] + weight * (ascending[above] - ascending[below]);
}

/// Silverman's rule of thumb, 0.9 min(deviation, interquartile range / 1.34) n^(-1/5) (Density
/// Estimation, 1986, (3.31)).
double silverman_bandwidth(std::span<const double> ascending) {
  const double deviation = std::sqrt(variance(ascending).value);
  const double range = interpolated(ascending, 0.75) - interpolated(ascending, 0.25);
  const double spread = range > 0 ? std::min(deviation, range / 1.34) : deviation;
  if (!(spread > 0))
    throw ArgumentError(
        "KernelDensity: the sample must not be constant; give a bandwidth to smooth it nevertheless");
  return 0.9 * spread * std::pow(static_cast<double>(ascending.size()), -0.2);
}

}  // namespace

Estimate mean(std::span<const double> sample) {
  require_sample("mean", sample, 2);
  return {mean_value(sample), std::sqrt(variance(sample).value / static_cast<double>(sample.size()))};
}

Estimate variance(std::span<const double> sample) {
  require_sample("variance", sample, 2);
  const auto n = static_cast<double>(sample.size());
  const double centre = mean_value(sample);
  double second = 0, fourth = 0;
  for (const double x : sample) {
    const double square = (x - centre) * (x - centre);
    second += square;
    fourth += square * square;
  }
  // The standard error of a variance comes from the fourth central moment.
  const double value = second / (n - 1);
  return {value, std::sqrt(std::max(fourth / n - value * value, 0.0) / n)};
}

std::vector<double> sorted(std::span<const double> sample) {
  require_sample("sorted", sample, 1);
  std::vector<double> ascending(sample.begin(), sample.end());
  std::sort(ascending.begin(), ascending.end());
  return ascending;
}

Estimate quantile(std::span<const double> ascending, double p) {
  require_sample("quantile", ascending, 1);
  if (!(p >= 0 && p <= 1)) throw ArgumentError(fmt::format("quantile: p must lie in [0, 1], got {}", p));
  // Twice the error of the rank on each side: half as many order statistics would leave the estimate 1.4
  // times noisier.
  const double spread = 2 * std::sqrt(p * (1 - p) / static_cast<double>(ascending.size()));
  return {interpolated(ascending, p),
          (interpolated(ascending, p + spread) - interpolated(ascending, p - spread)) / 4};
}

ProbabilityInterval binomial_interval(std::ptrdiff_t successes, std::ptrdiff_t trials) {
  if (trials < 1 || successes < 0 || successes > trials)
    throw ArgumentError(fmt::format(
        "binomial_interval: expected 0 to trials successes of at least 1, got {} of {}", successes, trials));
  // Wilson's interval stays within [0, 1] and is valid for few successes.
  constexpr double z = 1.959963984540054;  // 97.5 % of the standard normal distribution
  const auto n = static_cast<double>(trials), share = static_cast<double>(successes) / n;
  const double centre = share + z * z / (2 * n), scale = 1 + z * z / n;
  const double half = z * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  // At the ends centre and half are equal but for rounding.
  return {successes == 0 ? 0 : (centre - half) / scale, successes == trials ? 1 : (centre + half) / scale};
}

double kolmogorov_smirnov_distance(std::span<const double> first, std::span<const double> second) {
  require_sample("kolmogorov_smirnov_distance", first, 1);
  require_sample("kolmogorov_smirnov_distance", second, 1);
  const std::vector<double> a = sorted(first), b = sorted(second);
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  double distance = 0;
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const double x = std::min(a[i], b[j]);
    // Equal values of both samples are passed together: the distance counts between values only.
    while (i < a.size() && a[i] == x) ++i;
    while (j < b.size() && b[j] == x) ++j;
    distance = std::max(distance, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  return distance;
}

double kolmogorov_smirnov_distance(std::span<const double> sample,
                                   const std::function<double(double)>& distribution) {
  require_sample("kolmogorov_smirnov_distance", sample, 1);
  const std::vector<double> ascending = sorted(sample);
  const auto n = static_cast<double>(ascending.size());
  double distance = 0;
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const double value = distribution(ascending[i]);
    distance =
        std::max({distance, value - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - value});
  }
  return distance;
}

double kolmogorov_tail(double x) {
  if (!(x > 0)) return 1;
  // Both series are exact; each converges in a few terms on its side.
  if (x < 1) {
    const double pi = std::numbers::pi;
    double sum = 0;
    for (int k = 1; k < 12; k += 2) sum += std::exp(-k * k * pi * pi / (8 * x * x));
    return 1 - std::sqrt(2 * pi) / x * sum;
  }
  double sum = 0;
  for (int k = 1; k < 12; ++k) sum += (k % 2 == 1 ? 2 : -2) * std::exp(-2.0 * k * k * x * x);
  return sum;
}

double kolmogorov_smirnov_p_value(double distance, double effective_size) {
  if (!(distance >= 0 && distance <= 1))
    throw ArgumentError(
        fmt::format("kolmogorov_smirnov_p_value: distance must lie in [0, 1], got {}", distance));
  if (!(effective_size >= 1))
    throw ArgumentError(
        fmt::format("kolmogorov_smirnov_p_value: size must be at least 1, got {}", effective_size));
  const double root = std::sqrt(effective_size);
  // This is Stephens' correction for finite samples (Numerical Recipes, section 14.3).
  return kolmogorov_tail((root + 0.12 + 0.11 / root) * distance);
}

double two_sample_effective_size(std::size_t first, std::size_t second) {
  const auto n = static_cast<double>(first), m = static_cast<double>(second);
  return n * m / (n + m);
}

KernelDensity::KernelDensity(std::span<const double> sample) : ascending_{sorted(sample)}, bandwidth_{0} {
  require_sample("KernelDensity", sample, 2);
  bandwidth_ = silverman_bandwidth(ascending_);
}

KernelDensity::KernelDensity(std::span<const double> sample, double bandwidth)
    : ascending_{sorted(sample)}, bandwidth_{bandwidth} {
  if (!(bandwidth > 0))
    throw ArgumentError(fmt::format("KernelDensity: bandwidth must be positive, got {}", bandwidth));
}

double KernelDensity::operator()(double x) const {
  // Beyond 8 bandwidths a kernel is below 1.3e-14 of its peak.
  const auto from = std::lower_bound(ascending_.begin(), ascending_.end(), x - 8 * bandwidth_);
  double sum = 0;
  for (auto it = from; it != ascending_.end() && *it <= x + 8 * bandwidth_; ++it) {
    const double z = (x - *it) / bandwidth_;
    sum += std::exp(-z * z / 2);
  }
  return sum / (static_cast<double>(ascending_.size()) * bandwidth_ * std::sqrt(2 * std::numbers::pi));
}

}  // namespace widelimit::numerics
