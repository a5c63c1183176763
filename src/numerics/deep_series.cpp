#include "numerics/deep_series.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace widelimit::numerics {

bool DeepSeries::converges(double p, double q, double rho, double log_tolerance, Cache& left,
                           Cache& right) const {
  // With the whole of phi past the last order nothing but a small correlation could help.
  look_up(p, left);
  if (!left.available) return false;
  look_up(q, right);
  if (!right.available) return false;
  const double log_power = static_cast<double>(table_.order(deep_orders)) * std::log(std::abs(rho));
  return log_power + left.log_tail + right.log_tail <= log_tolerance;
}

std::optional<DualSlopes> DeepSeries::slopes(double p, double q, double c, double log_tolerance, Cache& left,
                                             Cache& right) const {
  const double rho = std::clamp(c / (std::sqrt(p) * std::sqrt(q)), -1.0, 1.0);
  if (!converges(p, q, rho, log_tolerance, left, right)) return std::nullopt;
  return slopes_.at(left.coefficients, right.coefficients, p, q, c, deep_orders);
}

std::optional<Dual<double>> DeepSeries::dual(double p, double q, double c, double log_tolerance, Cache& left,
                                             Cache& right) const {
  const double rho = std::clamp(c / (std::sqrt(p) * std::sqrt(q)), -1.0, 1.0);
  if (!converges(p, q, rho, log_tolerance, left, right)) return std::nullopt;

  constexpr std::size_t first = MehlerTable::first_coefficient;
  const std::size_t rise_offset = table_.has_own_rises() ? deep_orders : 0;
  double value = 0;
  double derivative = 0;
  for (std::size_t j = deep_orders; j-- > 0;) {
    const std::size_t order = table_.order(j);
    const double step = table_.order(j + 1) - order == 2 ? rho * rho : rho;
    const std::size_t slope = first + j;
    const std::size_t rise = slope + rise_offset;
    derivative = derivative * step + left.coefficients[slope] * right.coefficients[slope];
    value =
        value * step + left.coefficients[rise] * right.coefficients[rise] / static_cast<double>(order + 1);
  }
  return Dual<double>{left.coefficients[0] * right.coefficients[0] + c * value, derivative};
}

void DeepSeries::look_up(double variance, Cache& cache) const {
  if (cache.variance == variance) return;
  cache.variance = variance;
  cache.coefficients.resize(table_.stride());
  cache.available = table_.interpolate(variance, cache.coefficients);
  if (!cache.available) return;
  constexpr std::array<std::size_t, 1> all = {deep_orders};
  std::array<double, 1> tail{};
  table_.log_tails(variance, cache.coefficients, all, tail);
  cache.log_tail = tail[0];
}

}  // namespace widelimit::numerics
