#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "numerics/mehler_table.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// The slopes of a dual from its Hermite series, term by term. With alpha_k(p) = E[phi^(k)(sqrt(p) z)] Mehler's formula
/// is value = sum_k alpha_k(p) alpha_k(q) c^k / k!, and d alpha_k / dp = alpha_{k+2} / 2: no further coefficients are
/// needed (docs/theory/derivatives.md, section 2).
class MehlerSlopes {
 public:
  explicit MehlerSlopes(const MehlerTable& table);

  /// From coefficients() of the two variances and the first of its stored orders. At a variance of 0 the slopes in it
  /// and that of the derivative in c are 0.
  [[nodiscard]] DualSlopes at(std::span<const double> left, std::span<const double> right, double p, double q,
                              double c, std::size_t orders) const;

 private:
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  /// A stored order k.
  struct Term {
    double order;
    std::size_t gap;                         ///< Distance to the next stored order.
    std::size_t partner;                     ///< Place of order k + 2; none if it vanishes.
    double value_weight, derivative_weight;  ///< sqrt((k+2) / (k+1)) and sqrt((k+1) (k+2))
  };

  std::vector<Term> terms_;
  std::size_t rise_offset_;
  std::size_t first_;  ///< Place of order 1, or none.
};

}  // namespace widelimit::numerics
