#pragma once

#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/matrix.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::numerics {

/// An array of independent standard normal numbers, drawn in memory order. The stream is taken by value: the caller's
/// does not advance.
template <typename Scalar>
xt::xarray<Scalar> standard_normal(const std::vector<Index>& dimensions, RandomStream random) {
  auto array = xt::xarray<Scalar>::from_shape({dimensions.begin(), dimensions.end()});
  for (Scalar& number : array) number = static_cast<Scalar>(random.normal());
  return array;
}

}  // namespace widelimit::numerics
