#include "widelimit/numerics/numerical_derivative.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace widelimit::numerics {
namespace {

constexpr std::size_t least_rows = 10;
constexpr std::size_t most_rows = 128;
constexpr double shrink = 1.6;
constexpr double settled_share = 1e-10;  // of the derivative, that its error may be
constexpr double largest_step = 0.25;
constexpr double step_share = 1.0 / 16;  // of |x|, where that is more: rounding grows with the values of phi

/// Rows down to the step that the least rows reach from largest_step.
std::size_t rows_from(double step) {
  const double more = std::log(std::max(step / largest_step, 1.0)) / std::log(shrink);
  return std::min(least_rows + static_cast<std::size_t>(more), most_rows);
}

}  // namespace

double extrapolated_difference(const std::function<double(double)>& phi, double x, double step) {
  std::array<double, most_rows> previous{}, row{};
  double best = 0, error = std::numeric_limits<double>::infinity();
  const std::size_t rows = rows_from(step);
  for (std::size_t i = 0; i < most_rows; ++i, step /= shrink) {
    // Further rows are for functions that vary over shorter lengths, as powers do near 0.
    if (i >= rows && error <= settled_share * std::abs(best)) break;
    // phi sees rounded places, so their own difference is divided by, not twice the step.
    const double up = x + step, down = x - step;
    const double above = phi(up), below = phi(down);
    row[0] = (above - below) / (up - down);
    // Rounded values can agree by chance, so no error below their rounding is believed.
    const double rounding =
        std::numeric_limits<double>::epsilon() / 4 * (std::abs(above) + std::abs(below)) / step;
    if (i >= rows && !(rounding < error)) break;
    double factor = 1;
    // Past ten columns a row adds nothing but rounding.
    for (std::size_t j = 1; j <= std::min(i, least_rows); ++j) {
      factor *= shrink * shrink;
      row[j] = (factor * row[j - 1] - previous[j - 1]) / (factor - 1);
      const double change =
          std::max({std::abs(row[j] - row[j - 1]), std::abs(row[j] - previous[j - 1]), rounding});
      if (change < error) {
        error = change;
        best = row[j];
      }
    }
    if (i >= 3 && error <= 4e-15 * std::abs(best)) break;
    std::swap(previous, row);
  }
  return best;
}

std::function<double(double)> numerical_derivative(std::function<double(double)> phi,
                                                   std::vector<double> breakpoints) {
  return [phi = std::move(phi), breakpoints = std::move(breakpoints)](double x) {
    // Beside a breakpoint differences stay on their side of it, and some distance away from rounding.
    constexpr double nearest = 1e-6;
    double step = std::max(largest_step, step_share * std::abs(x));
    for (const double breakpoint : breakpoints) {
      if (std::abs(x - breakpoint) < nearest) x = breakpoint + (x < breakpoint ? -nearest : nearest);
      step = std::min(step, std::abs(x - breakpoint) / 2);
    }
    return extrapolated_difference(phi, x, step);
  };
}

}  // namespace widelimit::numerics
