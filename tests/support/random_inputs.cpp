#include "support/random_inputs.hpp"

#include <random>

namespace widelimit::testing {

template <typename Scalar>
xt::xarray<Scalar> random_inputs(unsigned seed, const std::vector<Index>& dimensions) {
  std::vector<std::size_t> shape(dimensions.begin(), dimensions.end());
  xt::xarray<Scalar> inputs = xt::xarray<Scalar>::from_shape(shape);
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  for (Scalar& value : inputs) value = static_cast<Scalar>(normal(generator));
  return inputs;
}

template xt::xarray<float> random_inputs(unsigned seed, const std::vector<Index>& dimensions);
template xt::xarray<double> random_inputs(unsigned seed, const std::vector<Index>& dimensions);

}  // namespace widelimit::testing
