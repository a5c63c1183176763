#include "widelimit/numerics/activation.hpp"

#include <algorithm>

#include "numerics/adjoint_entry.hpp"
#include "numerics/slope_differences.hpp"

namespace widelimit::numerics {
namespace {

/// Serves activations that do not override apply(): left[0] and right[0] hold the variances, which prepare() copied.
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

template <typename Scalar>
void apply_adjoint_entrywise(const Activation& activation, const AdjointRow<Scalar>& row) {
  for (std::size_t i = 0; i < row.size; ++i)
    write_checked_adjoint(
        row, i,
        activation.slopes(static_cast<double>(row.left_variance[i]),
                          static_cast<double>(row.right_variance[i]), static_cast<double>(row.nngp[i])));
}

}  // namespace

// Only the dual is known here, so slopes are extrapolated differences of it (docs/theory/derivatives.md, section 2).
DualSlopes Activation::slopes(double p, double q, double c) const {
  return slopes_by_differences(*this, p, q, c);
}

SelfSlopes Activation::self_slopes(double p) const { return self_slopes_by_differences(*this, p); }

void Activation::apply_adjoint(const AdjointRow<float>& row) const { apply_adjoint_entrywise(*this, row); }

void Activation::apply_adjoint(const AdjointRow<double>& row) const { apply_adjoint_entrywise(*this, row); }

void Activation::prepare(const float* variance, float* const* auxiliary, std::size_t size) const {
  std::copy_n(variance, size, auxiliary[0]);
}

void Activation::prepare(const double* variance, double* const* auxiliary, std::size_t size) const {
  std::copy_n(variance, size, auxiliary[0]);
}

void Activation::apply(const DualRow<float>& row) const { apply_entrywise(*this, row); }

void Activation::apply(const DualRow<double>& row) const { apply_entrywise(*this, row); }

}  // namespace widelimit::numerics
