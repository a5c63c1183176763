#include "propagation/angle_interpolation.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace widelimit::propagation {
namespace {

constexpr int fewest_angles = 16, most_angles = 512, probed_angles = 97;
constexpr double settled_angles = 1e-12;

double gap_at_node(double x) {
  const double half_sine = std::sin(std::numbers::pi * (x + 1) / 4);
  return 2 * half_sine * half_sine;
}

/// Roots of a Chebyshev polynomial, of which none is the angle 0, where F / gap is 0 / 0.
double angle_node(int j, int nodes) { return std::cos(std::numbers::pi * (j + 0.5) / nodes); }

}  // namespace

AngleInterpolation::AngleInterpolation(const std::function<double(double)>& function, int nodes) {
  std::vector<double> values;
  for (int j = 0; j < nodes; ++j) {
    const double gap = gap_at_node(angle_node(j, nodes));
    values.push_back(function(gap) / gap);
  }
  for (int k = 0; k < nodes; ++k) {
    double sum = 0;
    for (int j = 0; j < nodes; ++j)
      sum += values[static_cast<std::size_t>(j)] * std::cos(std::numbers::pi * k * (j + 0.5) / nodes);
    coefficients_.push_back((k == 0 ? 1.0 : 2.0) * sum / nodes);
  }
}

double AngleInterpolation::slope(double x) const {
  // Clenshaw's recurrence.
  double next = 0, after = 0;
  for (std::size_t k = coefficients_.size() - 1; k > 0; --k) {
    const double here = 2 * x * next - after + coefficients_[k];
    after = next;
    next = here;
  }
  return x * next - after + coefficients_[0];
}

double AngleInterpolation::operator()(double gap) const {
  const double angle = 2 * std::asin(std::sqrt(std::clamp(gap / 2, 0.0, 1.0)));
  return gap * slope(2 * angle / std::numbers::pi - 1);
}

std::optional<AngleInterpolation> AngleInterpolation::of(const std::function<double(double)>& function) {
  AngleInterpolation coarse(function, fewest_angles);
  for (int nodes = 2 * fewest_angles; nodes <= most_angles; nodes *= 2) {
    AngleInterpolation fine(function, nodes);
    double difference = 0, largest = 0;
    for (int j = 0; j < probed_angles; ++j) {
      const double x = angle_node(j, probed_angles);
      difference = std::max(difference, std::abs(fine.slope(x) - coarse.slope(x)));
      largest = std::max(largest, std::abs(fine.slope(x)));
    }
    if (difference <= settled_angles * largest) return fine;
    coarse = std::move(fine);
  }
  return std::nullopt;
}

}  // namespace widelimit::propagation
