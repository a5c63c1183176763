#pragma once

#include <cstddef>
#include <tuple>

#include "numerics/formula/vector_formulas.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// A formula read as vectors by the best instruction set of this machine: rows of activations (Activation::prepare(),
/// apply(), apply_adjoint()). Every variance must be 0 or within the range of the formula.
template <class Formula>
struct FormulaRows {
  template <typename Scalar>
  struct In {
    void (*prepare)(const Formula& formula, const Scalar* variance, Scalar* const* auxiliary,
                    std::size_t size);
    void (*apply)(const Formula& formula, const DualRow<Scalar>& row);
    /// By the formula's own slopes, or by jets, whose sums cancel in places: null in float then. Jets read no auxiliary
    /// numbers, which a row may be without then.
    void (*apply_adjoint)(const Formula& formula, const AdjointRow<Scalar>& row);
  };
  In<float> narrow;
  In<double> wide;

  template <typename Scalar>
  [[nodiscard]] const In<Scalar>& in() const {
    if constexpr (sizeof(Scalar) == sizeof(float))
      return narrow;
    else
      return wide;
  }
};

/// The variances that rows take: 0, and those within these bounds.
template <typename Scalar>
struct VarianceRange {
  Scalar least, most;

  [[nodiscard]] bool has(Scalar variance) const {
    return variance <= most && (variance >= least || variance == 0);
  }
};

/// Whether a range has all of the variances left[size] and right[size].
template <typename Scalar>
using HasAll = bool (*)(VarianceRange<Scalar> range, const Scalar* left, const Scalar* right,
                        std::size_t size);

template <class Formulas>
struct FormulaTables;
template <class... Formula>
struct FormulaTables<std::tuple<Formula...>> {
  std::tuple<FormulaRows<Formula>...> rows;
  std::tuple<HasAll<float>, HasAll<double>> has_all;
};

[[nodiscard]] const FormulaTables<formula::VectorFormulas>& formula_tables();

template <class Formula>
const FormulaRows<Formula>& formula_rows() {
  return std::get<FormulaRows<Formula>>(formula_tables().rows);
}

template <typename Scalar>
bool has_all(VarianceRange<Scalar> range, const Scalar* left, const Scalar* right, std::size_t size) {
  return std::get<HasAll<Scalar>>(formula_tables().has_all)(range, left, right, size);
}

}  // namespace widelimit::numerics
