#pragma once

#include <xtensor/xarray.hpp>

#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

/// Derivatives in float are computed in double where pairs are near ties (VjpComputation::is_near_ties()).
namespace widelimit {

template <typename Scalar>
[[nodiscard]] KernelCotangents<double> in_double(const KernelCotangents<Scalar>& cotangents) {
  return {cotangents.nngp.template cast<double>(), cotangents.ntk.template cast<double>()};
}

template <typename Scalar>
[[nodiscard]] xt::xarray<Scalar> rounded(const xt::xarray<double>& gradient) {
  return xt::cast<Scalar>(gradient);
}

}  // namespace widelimit
