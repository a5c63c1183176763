#include "numerics/mehler_slopes.hpp"

#include <algorithm>
#include <cmath>

namespace widelimit::numerics {
namespace {

/// sum_k weight_k a_{k+2}(p) a_k(q) rho^k, of the slopes in p.
struct SideSums {
  double value = 0;
  double derivative = 0;
};

}  // namespace

MehlerSlopes::MehlerSlopes(const MehlerTable& table)
    : rise_offset_{table.has_own_rises() ? table.stored_orders() : 0},
      first_{table.order(1) == 1 ? 1 : none} {
  for (std::size_t j = 0; j < table.stored_orders(); ++j) {
    const std::size_t order = table.order(j), gap = table.order(j + 1) - order;
    // Order k + 2 is the next stored one where parity leaves out every second, and the one after that otherwise.
    const bool two_on = table.order(j + 2) - order == 2;
    const auto k = static_cast<double>(order);
    terms_.push_back({k, gap, gap == 2 ? j + 1 : (two_on ? j + 2 : none), std::sqrt((k + 2) / (k + 1)),
                      std::sqrt((k + 1) * (k + 2))});
  }
}

DualSlopes MehlerSlopes::at(std::span<const double> left, std::span<const double> right, double p, double q,
                            double c, std::size_t orders) const {
  const double inverse_p = p > 0 ? 1 / std::sqrt(p) : 0, inverse_q = q > 0 ? 1 / std::sqrt(q) : 0;
  const double rho = std::clamp(c * inverse_p * inverse_q, -1.0, 1.0);
  const double* const d = left.data() + MehlerTable::first_coefficient;
  const double* const e = right.data() + MehlerTable::first_coefficient;
  const double *const d_rise = d + rise_offset_, *const e_rise = e + rise_offset_;
  double value = 0, value_in_c = 0, derivative = 0, bend = 0;
  SideSums in_left, in_right;
  double power = 1, power_below = 0;  // rho^k and rho^(k-1)
  for (std::size_t j = 0; j < orders; ++j) {
    const Term& term = terms_[j];
    const double rise = d_rise[j] * e_rise[j] * power;
    value += rise / (term.order + 1);
    value_in_c += rise;
    derivative += d[j] * e[j] * power;
    bend += term.order * d[j] * e[j] * power_below;
    // Partners past the truncation count as 0. `none` is the largest index, so the test covers it too.
    if (term.partner < orders) {
      in_left.value += term.value_weight * d_rise[term.partner] * e_rise[j] * power;
      in_right.value += term.value_weight * d_rise[j] * e_rise[term.partner] * power;
      in_left.derivative += term.derivative_weight * d[term.partner] * e[j] * power;
      in_right.derivative += term.derivative_weight * d[j] * e[term.partner] * power;
    }
    power_below = term.gap == 2 ? power * rho : power;
    power = power_below * rho;
  }
  const bool has_first = first_ < orders;
  const auto side = [&](double inverse, double other_inverse, double first, double other_mean,
                        const SideSums& sums) {
    // sqrt(q / p) rho, without a division by q.
    const double ratio = other_inverse > 0 ? rho * inverse / other_inverse : 0;
    return Dual<double>{(first * other_mean * inverse + ratio * sums.value) / 2,
                        inverse * inverse * sums.derivative / 2};
  };
  return {{left[0] * right[0] + c * value, derivative},
          side(inverse_p, inverse_q, has_first ? d_rise[first_] : 0, right[0], in_left),
          side(inverse_q, inverse_p, has_first ? e_rise[first_] : 0, left[0], in_right),
          inverse_p * inverse_q * bend,
          value_in_c};
}

}  // namespace widelimit::numerics
