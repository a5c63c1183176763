#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

/// Statistics of samples. All functions throw ArgumentError on a sample that is empty, too small or holds a
/// NaN.
namespace widelimit::numerics {

/// An estimate with one standard error.
struct Estimate {
  double value = 0;
  double standard_error = 0;
};

/// Sample mean; at least two values.
[[nodiscard]] Estimate mean(std::span<const double> sample);

/// Unbiased sample variance; at least two values. Standard error from the fourth central moment.
[[nodiscard]] Estimate variance(std::span<const double> sample);

/// An ascending copy.
[[nodiscard]] std::vector<double> sorted(std::span<const double> sample);

/// The p-quantile of an ascending sample, linear between order statistics at p (N - 1). The standard error is
/// a quarter of the distance of the quantiles at p -+ 2 sqrt(p (1 - p) / N), cut at the ends of the sample,
/// and needs no density estimate; it varies by N^{-1/4} of itself. Expects 0 <= p <= 1.
[[nodiscard]] Estimate quantile(std::span<const double> ascending, double p);

/// Bounds of a probability.
struct ProbabilityInterval {
  double lower = 0;
  double upper = 1;
};

/// The 95 % interval of a probability after `successes` of `trials` independent ones, by Wilson's score: its coverage
/// is right for few successes too, including none. ArgumentError unless 0 <= successes <= trials, trials >= 1.
[[nodiscard]] ProbabilityInterval binomial_interval(std::ptrdiff_t successes, std::ptrdiff_t trials);

/// The two-sample Kolmogorov-Smirnov distance, ties allowed, O(N log N).
[[nodiscard]] double kolmogorov_smirnov_distance(std::span<const double> first,
                                                 std::span<const double> second);

/// The distance of a sample from a continuous distribution function.
[[nodiscard]] double kolmogorov_smirnov_distance(std::span<const double> sample,
                                                 const std::function<double(double)>& distribution);

/// P(K > x) of the Kolmogorov distribution. 2e-16 absolute.
[[nodiscard]] double kolmogorov_tail(double x);

/// Probability of a larger distance between samples of one distribution, by Kolmogorov's limit with Stephens'
/// correction: within 0.01 from about 20 values on. Equal to `size` for the one-sample test; for two samples
/// N M / (N + M).
[[nodiscard]] double kolmogorov_smirnov_p_value(double distance, double effective_size);
[[nodiscard]] double two_sample_effective_size(std::size_t first, std::size_t second);

/// Gaussian kernel density estimate. Source  Silverman, "Density estimation", 1986, equation 3.31, for the bandwidth.
class KernelDensity {
 public:
  /// Bandwidth by Silverman's rule 0.9 min(sd, IQR / 1.34) N^{-1/5}. Error: ArgumentError if the sample is
  /// constant.
  explicit KernelDensity(std::span<const double> sample);
  /// Expects bandwidth > 0.
  KernelDensity(std::span<const double> sample, double bandwidth);

  [[nodiscard]] double bandwidth() const { return bandwidth_; }
  /// Density at x; values more than 8 bandwidths away are left out (below 1e-14 of the kernel's peak).
  [[nodiscard]] double operator()(double x) const;

 private:
  std::vector<double> ascending_;
  double bandwidth_;
};

}  // namespace widelimit::numerics
