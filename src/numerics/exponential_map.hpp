#pragma once

#include <algorithm>
#include <cstddef>

#include "numerics/rows/exponential_rows.hpp"
#include "numerics/vector_form.hpp"

namespace widelimit::numerics {

/// The vectorised rows of sines, radial basis functions and exponentials, for VectorForm: of type Dual, by the function
/// that `rows` names.
template <typename Dual>
class ExponentialMap {
 public:
  template <typename Scalar>
  using Rows = void (*ExponentialRows<Scalar>::*)(const Dual& dual, const DualRow<Scalar>& row);

  ExponentialMap(const Dual& dual, Rows<float> narrow, Rows<double> wide)
      : dual_{dual}, narrow_{narrow}, wide_{wide} {}

  static constexpr std::size_t auxiliary_count = 1;

  template <typename Scalar>
  void prepare(const Scalar* variance, Scalar* const* auxiliary, std::size_t size) const {
    std::copy_n(variance, size, auxiliary[0]);
  }
  template <typename Scalar>
  [[nodiscard]] static bool covers(const DualRow<Scalar>&) {
    return true;
  }
  void apply(const DualRow<float>& row) const { (exponential_rows<float>().*narrow_)(dual_, row); }
  void apply(const DualRow<double>& row) const { (exponential_rows<double>().*wide_)(dual_, row); }

 private:
  Dual dual_;
  Rows<float> narrow_;
  Rows<double> wide_;
};

}  // namespace widelimit::numerics
