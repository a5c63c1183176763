#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "numerics/rows/tilted_rows.hpp"
#include "numerics/vector_form.hpp"

namespace widelimit::numerics {

/// The vectorised rows of a function with a tilted dual, for VectorForm.
template <class Formula>
class TiltedMap {
 public:
  explicit TiltedMap(const TiltedDual& dual) : dual_{dual} {}

  static constexpr std::size_t auxiliary_count = 2;

  template <typename Scalar>
  void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    tilted_rows<Scalar, Formula>().prepare(dual_.shift, variance, auxiliary, size);
  }
  template <typename Scalar>
  [[nodiscard]] bool covers(const DualRow<Scalar>& row) const {
    return tilted_rows<Scalar, Formula>().cover(row);
  }
  template <typename Scalar>
  void apply(const DualRow<Scalar>& row) const {
    tilted_rows<Scalar, Formula>().apply(dual_, row);
  }
  template <typename Scalar>
  void apply_adjoint(const AdjointRow<Scalar>& row) const {
    tilted_rows<Scalar, Formula>().apply_adjoint(dual_, row);
  }

 private:
  TiltedDual dual_;
};

/// Whether the shift keeps squares within the range of rows and devices.
inline bool has_rows(const TiltedDual& dual) {
  return dual.shift >= smallest_shift && dual.shift <= largest_shift;
}

/// The vectorised form of a function whose formula has a tilted dual, where the shift allows it, otherwise the
/// entry-wise formula.
template <typename Form>
ActivationPtr make_tilted_form(Form form) {
  const auto text = form.text();
  if (!has_rows(text.dual)) return make_closed_form(std::move(form));
  return make_vector_form(std::move(form), TiltedMap<std::remove_cvref_t<decltype(text)>>(text.dual));
}

}  // namespace widelimit::numerics
