#include "numerics/gaussian_window.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace widelimit::numerics {
namespace {

/// Of sizes, in standard deviations; no short number, at whose multiples functions may vanish.
constexpr double window_spacing = 0.4871;
/// Sizes before the least window tell how fast the integrand falls there.
constexpr double first_size = least_window - 4 * window_spacing;
/// Slower, per standard deviation, no integrand is taken to fall for good.
constexpr double least_fall = 0.5;

double log_density(double z) {
  constexpr double log_at_zero = -0.918938533204672742;  // log of (2 pi)^(-1/2)
  return log_at_zero - z * z / 2;
}

constexpr double infinity = std::numeric_limits<double>::infinity();

/// What is left of one side past the places first_size + k window_spacing, in units of what may be left.
class SideTail {
 public:
  SideTail(const LogSize& log_size, double side, double log_left) {
    for (double z = first_size; z <= widest_window; z += window_spacing) {
      const double size = log_size(side * z) + log_density(z);
      if (std::isnan(size) || size == infinity) break;
      sizes_.push_back(size - log_left);
    }
    left_.assign(sizes_.size(), 0.0);
    double sum = beyond();
    for (std::size_t k = sizes_.size(); k-- > 0;) left_[k] = sum += window_spacing * std::exp(sizes_[k]);
  }

  [[nodiscard]] double past(std::size_t place) const {
    return place < left_.size() ? left_[place] : infinity;
  }

 private:
  /// Past the last place. Of two neighbours the larger one counts: the other may lie beside a zero.
  [[nodiscard]] double beyond() const {
    constexpr std::size_t needed = 4;
    if (sizes_.size() < needed) return infinity;
    const auto from_end = [&](std::size_t k) { return sizes_[sizes_.size() - k]; };
    const double last = std::max(from_end(1), from_end(2)), before = std::max(from_end(3), from_end(4));
    if (last == -infinity) return 0;
    const double fall = (before - last) / (2 * window_spacing);
    return fall >= least_fall ? std::exp(last) / fall : infinity;
  }

  std::vector<double> sizes_;
  std::vector<double> left_;
};

/// log of the largest |f| so far, at 0, 1/64, .. 1 of `end`.
std::vector<double> log_envelope(const std::function<double(double)>& f, double end) {
  constexpr int parts = 64;
  std::vector<double> envelope;
  double largest = -infinity;
  for (int k = 0; k <= parts; ++k) {
    largest = std::max(largest, std::log(std::abs(f(end * k / parts))));
    envelope.push_back(largest);
  }
  return envelope;
}

/// The largest x > 0 where f is finite, to rounding; infinity if it is finite as far as 2^40.
double last_finite(const std::function<double(double)>& f) {
  const auto is_finite = [&](double x) { return std::isfinite(f(x)); };
  double begin = 0.5, end = 1;
  for (; is_finite(end); end *= 2) {
    if (end >= 0x1p40) return infinity;
    begin = end;
  }
  while (true) {
    const double middle = begin + (end - begin) / 2;
    if (!(begin < middle && middle < end)) return begin;
    (is_finite(middle) ? begin : end) = middle;
  }
}

}  // namespace

double gaussian_window(const LogSize& log_size, double log_left) {
  const SideTail right(log_size, 1, log_left), left(log_size, -1, log_left);
  for (std::size_t place = 0;; ++place) {
    const double z = first_size + static_cast<double>(place) * window_spacing;
    if (z > widest_window) return infinity;
    // The integrand falls there: a sum of sizes from a place on is more than the integral past it.
    if (right.past(place) + left.past(place) <= 1) return std::max(z, least_window);
  }
}

bool outgrows_gaussians(const std::function<double(double)>& f) {
  constexpr double overflow = 650;  // of log |f| at most 709.8
  const double end = last_finite(f);
  if (end == infinity) return false;
  const std::vector<double> envelope = log_envelope(f, end);
  const double size = envelope.back();
  if (!(size > overflow)) return false;
  // Of log |f| at equal steps the third difference is 0 for x^2, and positive for faster growth and for logarithms; the
  // latter are concave in x^2. Near the end terms of lower order count least, farther apart places see least of what
  // oscillates: both must say so.
  const auto third = [&](std::size_t step) {
    const std::size_t last = envelope.size() - 1;
    return envelope[last] - 3 * envelope[last - step] + 3 * envelope[last - 2 * step] -
           envelope[last - 3 * step];
  };
  const auto at = [&](double share) { return envelope[static_cast<std::size_t>(share * 64)]; };
  // Slopes in x^2 between 0.5, 0.75 and 1 of the end.
  const bool is_convex = (at(1) - at(0.75)) / (1 - 0.5625) > (at(0.75) - at(0.5)) / (0.5625 - 0.25);
  return is_convex && third(6) > 0.0015 * size && third(16) > 0.02 * size;
}

}  // namespace widelimit::numerics
