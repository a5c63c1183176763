#pragma once

#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/network/shape.hpp"

namespace widelimit::testing {

/// Standard normal inputs [n, spatial..., C]; equal seeds give equal inputs. Float and double.
template <typename Scalar = double>
xt::xarray<Scalar> random_inputs(unsigned seed, const std::vector<Index>& dimensions);

}  // namespace widelimit::testing
