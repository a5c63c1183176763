#include "widelimit/numerics/activation.hpp"

#include <algorithm>
#include <cmath>

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

template <typename Scalar>
void apply_adjoint_entrywise(const Activation& activation, const AdjointRow<Scalar>& row) {
  for (std::size_t i = 0; i < row.size; ++i) {
    const DualSlopes slopes =
        activation.slopes(static_cast<double>(row.left_variance[i]),
                          static_cast<double>(row.right_variance[i]), static_cast<double>(row.nngp[i]));
    const auto nngp = static_cast<double>(row.nngp_adjoint[i]);
    const bool with_ntk = row.ntk_adjoint != nullptr;
    const auto ntk = with_ntk ? static_cast<double>(row.ntk_adjoint[i]) : 0.0;
    const double product = with_ntk ? ntk * static_cast<double>(row.ntk[i]) : 0.0;
    row.nngp_adjoint[i] =
        static_cast<Scalar>(nngp * slopes.dual.derivative + product * slopes.derivative_in_c);
    row.left_adjoint[i] = static_cast<Scalar>(nngp * slopes.left.value + product * slopes.left.derivative);
    row.right_adjoint[i] = static_cast<Scalar>(nngp * slopes.right.value + product * slopes.right.derivative);
    if (with_ntk) row.ntk_adjoint[i] = static_cast<Scalar>(ntk * slopes.dual.derivative);
  }
}

}  // namespace

DualSlopes Activation::slopes(double p, double q, double c) const {
  const auto difference = [&](double dp, double dq, double dc, double step) {
    const Dual<double> above = dual(p + dp, q + dq, c + dc), below = dual(p - dp, q - dq, c - dc);
    return Dual<double>{(above.value - below.value) / (2 * step),
                        (above.derivative - below.derivative) / (2 * step)};
  };
  const double hp = 1e-5 * p, hq = 1e-5 * q, hc = 1e-5 * (std::sqrt(p * q) - std::abs(c));
  return {dual(p, q, c), hp > 0 ? difference(hp, 0, 0, hp) : Dual<double>{0, 0},
          hq > 0 ? difference(0, hq, 0, hq) : Dual<double>{0, 0},
          hc > 0 ? difference(0, 0, hc, hc).derivative : 0.0};
}

SelfSlopes Activation::self_slopes(double p) const {
  const double h = 1e-5 * p;
  if (!(h > 0)) return {dual(p, p, p), {0, 0}};
  const Dual<double> above = dual(p + h, p + h, p + h), below = dual(p - h, p - h, p - h);
  return {dual(p, p, p),
          {(above.value - below.value) / (2 * h), (above.derivative - below.derivative) / (2 * h)}};
}

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
