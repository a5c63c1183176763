#include "widelimit/numerics/activation.hpp"

#include <algorithm>

namespace widelimit::numerics {
namespace {

template <typename Scalar>
void apply_entrywise(const Activation& activation, const DualRow<Scalar>& row) {
  for (std::size_t i = 0; i < row.size; ++i) {
    const auto [value, derivative] =
        activation.dual(static_cast<double>(row.left[0][i]), static_cast<double>(row.right[0][i]),
                        static_cast<double>(row.nngp[i]));
    row.nngp[i] = static_cast<Scalar>(value);
    if (row.ntk != nullptr) row.ntk[i] = static_cast<Scalar>(static_cast<double>(row.ntk[i]) * derivative);
  }
}

}  // namespace

void Activation::prepare(const float* variance, float* const* auxiliary, std::size_t size) const {
  std::copy_n(variance, size, auxiliary[0]);
}

void Activation::prepare(const double* variance, double* const* auxiliary, std::size_t size) const {
  std::copy_n(variance, size, auxiliary[0]);
}

void Activation::apply(const DualRow<float>& row) const { apply_entrywise(*this, row); }

void Activation::apply(const DualRow<double>& row) const { apply_entrywise(*this, row); }

}  // namespace widelimit::numerics
