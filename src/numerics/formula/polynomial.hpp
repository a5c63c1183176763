#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {

/// Polynomials: the moments of polynomial.cpp, g_k(p) = sum_m table[k][m] (p - centre)^m, are the auxiliary numbers.
struct PolynomialFormula {
  double centre;
  std::vector<std::vector<double>> table;

  [[nodiscard]] std::size_t auxiliary_count() const { return table.size(); }
  template <typename N>
  std::vector<N> prepare(const N& variance) const {
    std::vector<N> numbers;
    const N from_centre = variance - N(centre);
    for (const std::vector<double>& row : table) {
      // Symbols fold no constants, so an order without moments, and the highest coefficient, are numbers as such.
      N sum = N(row.empty() ? 0.0 : row.back());
      for (std::size_t m = row.empty() ? 0 : row.size() - 1; m-- > 0;)
        sum = fused(sum, from_centre, N(row[m]));
      numbers.push_back(sum);
    }
    return numbers;
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    N value = left[table.size() - 1] * right[table.size() - 1];
    if (table.size() == 1) return {value, N(0)};
    // Horner's scheme for the value and for its derivative in c, which begins with the highest coefficient.
    N derivative = value;
    value = fused(value, c, left[table.size() - 2] * right[table.size() - 2]);
    for (std::size_t k = table.size() - 2; k-- > 0;) {
      derivative = fused(derivative, c, value);
      value = fused(value, c, left[k] * right[k]);
    }
    return {value, derivative};
  }
};

}  // namespace widelimit::numerics::formula
