#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "widelimit/numerics/formula/row_formula.hpp"

/// The formulas of stages that are no nonlinearities: norms, masks, dropout.
namespace widelimit::numerics::formula {

/// K' = K r r', T' = T r r' with r = 1 / sqrt(variance + epsilon): norms over channels.
struct NormFormula {
  double epsilon;

  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  std::array<N, 1> prepare(const N& variance) const {
    const N shifted = variance + N(epsilon);
    return {choose(is_less(N(0), shifted), N(1) / root(shifted), N(0))};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N factor = left[0] * right[0];
    return {factor * c, factor};
  }
};

/// The same with factors that do not come from the position's own variance: masks.
struct ScaleFormula {
  [[nodiscard]] static std::size_t auxiliary_count() { return 1; }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N> left, std::span<const N> right, const N& c) const {
    const N factor = left[0] * right[0];
    return {factor * c, factor};
  }
};

/// Dropout: entries of a position with itself are divided by `keep`.
struct DropoutFormula {
  double keep;

  [[nodiscard]] static std::size_t auxiliary_count() { return 0; }
  [[nodiscard]] double self_factor() const { return 1 / keep; }
  template <typename N>
  static std::array<N, 0> prepare(const N&) {
    return {};
  }
  template <typename N>
  [[nodiscard]] Mapped<N> apply(std::span<const N>, std::span<const N>, const N& c) const {
    return {c, N(1)};
  }
};

}  // namespace widelimit::numerics::formula
