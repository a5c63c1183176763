#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
#include <xtensor/xarray.hpp>
#include <xtensor/xbuilder.hpp>

#include "widelimit/error.hpp"
#include "widelimit/kernel/inputs.hpp"

namespace widelimit {

/// The masks of all batches, one after the other, [n, spatial...]. Inputs without a mask count all positions.
template <typename Scalar>
xt::xarray<bool> joined_masks(const std::vector<const Inputs<Scalar>*>& batches) {
  const Shape& shape = batches.front()->shape();
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  sizes.insert(sizes.begin(), 0);
  for (const Inputs<Scalar>* batch : batches) sizes.front() += static_cast<std::size_t>(batch->size());
  xt::xarray<bool> mask = xt::ones<bool>(sizes);
  auto next = mask.begin();
  for (const Inputs<Scalar>* batch : batches)
    for (Index i = 0; i < batch->size(); ++i) {
      const auto counts = batch->mask(i);
      std::transform(counts.begin(), counts.end(), next, [](std::uint8_t value) { return value != 0; });
      next += position_count(batch->shape(i));
    }
  return mask;
}

/// The masks of ragged batches, one for each input.
template <typename Scalar>
std::vector<xt::xarray<bool>> joined_mask_list(const std::vector<const Inputs<Scalar>*>& batches) {
  std::vector<xt::xarray<bool>> masks;
  for (const Inputs<Scalar>* batch : batches)
    for (Index i = 0; i < batch->size(); ++i) {
      const Shape& shape = batch->shape(i);
      const auto counts = batch->mask(i);
      xt::xarray<bool> mask = xt::ones<bool>(std::vector<std::size_t>(shape.begin(), shape.end()));
      std::transform(counts.begin(), counts.end(), mask.begin(),
                     [](std::uint8_t value) { return value != 0; });
      masks.push_back(std::move(mask));
    }
  return masks;
}

template <typename Scalar>
std::vector<InputGraph> joined_graphs(const std::vector<const Inputs<Scalar>*>& batches) {
  std::vector<InputGraph> graphs;
  for (const Inputs<Scalar>* batch : batches) {
    if (batch->graphs().empty())
      throw ArgumentError("inputs: expected graphs in all batches or in none, got them in some");
    graphs.insert(graphs.end(), batch->graphs().begin(), batch->graphs().end());
  }
  return graphs;
}

/// Copies the numbers of batches with equal channels, one after the other, to a batch that owns its numbers, perhaps
/// in another precision. It is ragged if one of the batches is.
template <typename To, typename From>
Inputs<To> copied_numbers(const std::vector<const Inputs<From>*>& batches) {
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

/// Copies batches with their masks and graphs to a batch that owns its numbers. Throws ArgumentError if only some of
/// them have graphs.
template <typename To, typename From>
Inputs<To> copied_inputs(const std::vector<const Inputs<From>*>& batches) {
  Inputs<To> copy = copied_numbers<To, From>(batches);
  if (std::any_of(batches.begin(), batches.end(), [](const auto* batch) { return batch->is_masked(); }))
    return copy.is_ragged() ? Inputs<To>(copy, joined_mask_list(batches))
                            : Inputs<To>(copy, joined_masks(batches));
  if (std::any_of(batches.begin(), batches.end(), [](const auto* batch) { return !batch->graphs().empty(); }))
    return Inputs<To>(copy, joined_graphs(batches));
  return copy;
}

}  // namespace widelimit
