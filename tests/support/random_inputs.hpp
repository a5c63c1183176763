#pragma once

#include <random>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/network/shape.hpp"

namespace widelimit::testing {

/// Standard normal inputs [n, spatial..., C]; equal seeds give equal inputs.
template <typename Scalar = double>
xt::xarray<Scalar> random_inputs(unsigned seed, const std::vector<Index>& dimensions) {
  std::vector<std::size_t> shape(dimensions.begin(), dimensions.end());
  xt::xarray<Scalar> inputs = xt::xarray<Scalar>::from_shape(shape);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (Scalar& value : inputs) value = static_cast<Scalar>(normal(generator));
  return inputs;
}

}  // namespace widelimit::testing
