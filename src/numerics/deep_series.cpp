#include "numerics/deep_series.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace widelimit::numerics {

std::optional<std::size_t> DeepSeries::orders_of(double p, double q, double rho, double log_tolerance,
                                                 Cache& left, Cache& right) const {
  const std::span<const double> left_tails = table_.tail_bounds(p), right_tails = table_.tail_bounds(q);
  if (left_tails.empty() || right_tails.empty()) return std::nullopt;
  // For rho = 0 the logarithm is -infinity, which the comparison below accepts at the first truncation.
  const double log_rho = std::log(std::abs(rho));
  for (std::size_t t = 0; t < truncations.size(); ++t) {
    const double log_power = static_cast<double>(table_.order(truncations[t])) * log_rho;
    if (!(log_power + left_tails[t] + right_tails[t] <= log_tolerance)) continue;
    look_up(p, truncations[t], left);
    look_up(q, truncations[t], right);
    return truncations[t];
  }
  return std::nullopt;
}

std::optional<DualSlopes> DeepSeries::slopes(double p, double q, double c, double log_tolerance, Cache& left,
                                             Cache& right) const {
  const double rho = std::clamp(c / (std::sqrt(p) * std::sqrt(q)), -1.0, 1.0);
  const auto orders = orders_of(p, q, rho, log_tolerance, left, right);
  if (!orders) return std::nullopt;
  return slopes_.at(left.coefficients, right.coefficients, p, q, c, *orders);
}

std::optional<Dual<double>> DeepSeries::dual(double p, double q, double c, double log_tolerance, Cache& left,
                                             Cache& right) const {
  const double rho = std::clamp(c / (std::sqrt(p) * std::sqrt(q)), -1.0, 1.0);
  const auto orders = orders_of(p, q, rho, log_tolerance, left, right);
  if (!orders) return std::nullopt;

  constexpr std::size_t first = MehlerTable::first_coefficient;
  // Where the e_k of MehlerTable differ from the d_k, they follow all of these.
  const std::size_t rise_offset = table_.has_own_rises() ? truncations.back() : 0;
  double value = 0;
  double derivative = 0;
  // Horner's scheme in rho, from the last order down. Where parity leaves out every second order a step is rho^2.
  for (std::size_t j = *orders; j-- > 0;) {
    const std::size_t order = table_.order(j);
    const double step = table_.order(j + 1) - order == 2 ? rho * rho : rho;
    const std::size_t slope = first + j;
    const std::size_t rise = slope + rise_offset;
    derivative = derivative * step + left.coefficients[slope] * right.coefficients[slope];
    value =
        value * step + left.coefficients[rise] * right.coefficients[rise] / static_cast<double>(order + 1);
  }
  // With c = sqrt(pq) rho the product of the coefficients of order k + 1 is c e_k(p) e_k(q) rho^k / (k + 1).
  return Dual<double>{left.coefficients[0] * right.coefficients[0] + c * value, derivative};
}

void DeepSeries::look_up(double variance, std::size_t orders, Cache& cache) const {
  if (cache.variance == variance && cache.orders >= orders) return;
  cache.coefficients.resize(table_.stride());
  static_cast<void>(table_.interpolate(variance, orders, cache.coefficients));  // true: it has tail bounds
  cache.variance = variance;
  cache.orders = orders;
}

}  // namespace widelimit::numerics
