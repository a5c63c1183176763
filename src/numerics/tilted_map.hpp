#pragma once

#include <cstddef>

#include "numerics/formula/smooth_formulas.hpp"
#include "numerics/rows/tilted_rows.hpp"
#include "numerics/vector_form.hpp"

namespace widelimit::numerics {

/// The vectorised rows of erf, GELU and exp(-x^2), for VectorForm.
class TiltedMap {
 public:
  enum class Function { erf, gelu, gaussian };

  TiltedMap(Function function, const TiltedDual& dual) : function_{function}, dual_{dual} {}

  static constexpr std::size_t auxiliary_count = 2;

  template <typename Scalar>
  void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    tilted_rows<Scalar>().prepare(dual_.shift, variance, auxiliary, size);
  }
  template <typename Scalar>
  [[nodiscard]] bool covers(const DualRow<Scalar>& row) const {
    return tilted_rows<Scalar>().cover(row);
  }
  template <typename Scalar>
  void apply(const DualRow<Scalar>& row) const {
    switch (function_) {
      case Function::erf:
        return tilted_rows<Scalar>().erf(dual_, row);
      case Function::gelu:
        return tilted_rows<Scalar>().gelu(row);
      case Function::gaussian:
        return tilted_rows<Scalar>().gaussian(dual_, row);
    }
  }

  template <typename Scalar>
  void apply_adjoint(const AdjointRow<Scalar>& row) const {
    switch (function_) {
      case Function::erf:
        return tilted_rows<Scalar>().erf_adjoint(dual_, row);
      case Function::gelu:
        return tilted_rows<Scalar>().gelu_adjoint(row);
      case Function::gaussian:
        return tilted_rows<Scalar>().gaussian_adjoint(dual_, row);
    }
  }

 private:
  Function function_;
  TiltedDual dual_;
};

/// Whether the shift keeps squares within the range of rows and devices.
inline bool has_rows(const TiltedDual& dual) {
  return dual.shift >= smallest_shift && dual.shift <= largest_shift;
}

/// The vectorised form where the shift allows it, otherwise the entry-wise formula.
template <typename Formula>
ActivationPtr make_tilted_form(Formula formula, TiltedMap::Function function, const TiltedDual& dual) {
  if (!has_rows(dual)) return make_closed_form(std::move(formula));
  return make_vector_form(std::move(formula), TiltedMap(function, dual));
}

}  // namespace widelimit::numerics
