// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_LINEAR) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_LINEAR

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit::numerics::formula {
#endif

/// phi(x) = slope x: K' = slope^2 K, T' = slope^2 T.
struct LinearFormula {
  double slope;

  [[nodiscard]] std::optional<HomogeneousSlopes> homogeneous() const { return {{slope, slope}}; }
  /// Activations prepare the variance, which nothing reads.
  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  static std::array<N, 1> prepare(const N& variance) {
    return {variance};
  }
  template <typename N>
  [[nodiscard]] N value(const N& x) const {
    return N(slope) * x;
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N>, std::span<const N>, const N& c) const {
    return {N(slope * slope) * c, N(slope * slope)};
  }
};
}

#endif
