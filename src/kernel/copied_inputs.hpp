#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>
#include <xtensor/xarray.hpp>

#include "widelimit/kernel/inputs.hpp"

namespace widelimit {

/// Copies the numbers of batches of equal channels, one behind the other: a batch that owns its numbers, perhaps in
/// another precision. It is ragged if one of them is.
template <typename To, typename From>
Inputs<To> copied_inputs(const std::vector<const Inputs<From>*>& batches) {
  const auto dimensions = [&](const Shape& shape) {
    std::vector<std::size_t> sizes(shape.begin(), shape.end());
    sizes.push_back(static_cast<std::size_t>(batches.front()->channels()));
    return sizes;
  };
  const auto convert = [](From value) { return static_cast<To>(value); };
  const auto for_each_input = [&](const auto& body) {
    for (const Inputs<From>* batch : batches)
      for (Index i = 0; i < batch->size(); ++i) body((*batch)[i], batch->shape(i));
  };
  if (std::any_of(batches.begin(), batches.end(), [](const auto* batch) { return batch->is_ragged(); })) {
    std::vector<xt::xarray<To>> copies;
    for_each_input([&](std::span<const From> input, const Shape& shape) {
      xt::xarray<To> copy = xt::xarray<To>::from_shape(dimensions(shape));
      std::transform(input.begin(), input.end(), copy.begin(), convert);
      copies.push_back(std::move(copy));
    });
    return Inputs<To>(std::move(copies));
  }
  std::vector<std::size_t> sizes = dimensions(batches.front()->shape());
  sizes.insert(sizes.begin(), 0);
  for (const Inputs<From>* batch : batches) sizes.front() += static_cast<std::size_t>(batch->size());
  xt::xarray<To> copy = xt::xarray<To>::from_shape(sizes);
  auto next = copy.begin();
  for_each_input([&](std::span<const From> input, const Shape&) {
    next = std::transform(input.begin(), input.end(), next, convert);
  });
  return Inputs<To>(std::move(copy));
}

}  // namespace widelimit
