#include "widelimit/kernel/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "widelimit/error.hpp"

namespace widelimit {

template <typename Scalar>
Inputs<Scalar>::Inputs(const Scalar* data, std::vector<Index> dimensions) : data_{data} {
  constexpr std::size_t most_dimensions = 5;
  const auto rank = dimensions.size();
  if (rank < 2 || rank > most_dimensions)
    throw ArgumentError(fmt::format(
        "inputs: expected [n, C] or [n, spatial..., C] with one to three spatial axes, got {} dimensions",
        rank));
  for (std::size_t i = 0; i < rank; ++i)
    if (dimensions[i] < 1)
      throw ArgumentError(
          fmt::format("inputs: expected positive sizes, got [{}]", fmt::join(dimensions, ", ")));
  size_ = dimensions.front();
  channels_ = dimensions.back();
  shape_.assign(dimensions.begin() + 1, dimensions.end() - 1);
}

template <typename Scalar>
std::span<const Scalar> Inputs<Scalar>::operator[](Index i) const {
  const Index count = position_count(shape_) * channels_;
  return {data_ + i * count, static_cast<std::size_t>(count)};
}

template class Inputs<float>;
template class Inputs<double>;

}  // namespace widelimit
