#include "numerics/numerical_derivative.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace widelimit::numerics {
namespace {

constexpr std::size_t halvings = 10;
constexpr double shrink = 1.6;
constexpr double largest_step = 0.25;

double extrapolated_difference(const std::function<double(double)>& phi, double x, double step) {
  std::array<double, halvings> previous{}, row{};
  double best = 0, error = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < halvings; ++i, step /= shrink) {
    const double up = x + step, down = x - step;
    row[0] = (phi(up) - phi(down)) / (up - down);
    double factor = 1;
    for (std::size_t j = 1; j <= i; ++j) {
      factor *= shrink * shrink;
      row[j] = (factor * row[j - 1] - previous[j - 1]) / (factor - 1);
      const double change = std::max(std::abs(row[j] - row[j - 1]), std::abs(row[j] - previous[j - 1]));
      if (change < error) {
        error = change;
        best = row[j];
      }
    }
    std::swap(previous, row);
  }
  return best;
}

}  // namespace

std::function<double(double)> numerical_derivative(std::function<double(double)> phi,
                                                   std::vector<double> breakpoints) {
  return [phi = std::move(phi), breakpoints = std::move(breakpoints)](double x) {
    // Beside a breakpoint differences stay on their side of it, and some distance away from rounding.
    constexpr double nearest = 1e-6;
    double step = largest_step;
    for (const double breakpoint : breakpoints) {
      if (std::abs(x - breakpoint) < nearest) x = breakpoint + (x < breakpoint ? -nearest : nearest);
      step = std::min(step, std::abs(x - breakpoint) / 2);
    }
    return extrapolated_difference(phi, x, step);
  };
}

}  // namespace widelimit::numerics
