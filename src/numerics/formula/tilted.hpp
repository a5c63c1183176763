// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_TILTED) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_TILTED

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <cstddef>

#include "numerics/formula/arc.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
#endif

/// What erf, GELU and exp(-x^2) share: the variances enter with a shift s, R^2 = (s + p)(s + q) - c^2. Auxiliary
/// numbers: the variance p, and the inverse root of s + p.
struct TiltedFormula {
  double shift;

  [[nodiscard]] static std::size_t auxiliary_count() { return 2; }
  [[nodiscard]] static double largest_variance(Precision precision) {
    return precision == Precision::narrow ? 1e18 : 1e150;
  }
  /// Squares of the shift stay within the range of vectors and devices.
  [[nodiscard]] bool has_rows() const { return shift >= 1e-12 && shift <= 1e12; }
  template <typename N>
  std::array<N, 2> prepare(const N& variance) const {
    return {variance, N(1) / root(N(shift) + variance)};
  }

 protected:
  /// R, of s^2 + s (p + q) + det, of which no term is negative, so that nothing cancels.
  template <typename N>
  [[nodiscard]] N tilted_root(const N& p, const N& q, const N& det) const {
    return root(fused(N(shift), p + q, det) + N(shift * shift));
  }
};
}

#endif
