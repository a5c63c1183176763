#include "widelimit/gp/feature_map.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "gp/checks.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"

namespace widelimit::gp {

namespace {

/// Input i times the factors, to `out`.
template <typename Scalar>
void write_mapped(std::span<const Scalar> input, const Matrix<double>& factors, Scalar* out) {
  const Index channels = factors.cols(), positions = static_cast<Index>(input.size()) / channels;
  const Matrix<double> from =
      Eigen::Map<const Matrix<Scalar>>(input.data(), positions, channels).template cast<double>();
  Eigen::Map<Matrix<Scalar>> to(out, positions, channels);
  if (factors.rows() == 1)
    to = (from * factors.row(0).asDiagonal()).template cast<Scalar>();
  else
    to = (from * factors).template cast<Scalar>();
}

template <typename Scalar>
Inputs<Scalar> mapped_numbers(const Inputs<Scalar>& x, const Matrix<double>& factors) {
  const auto extents = [&](const Shape& shape) {
    std::vector<std::size_t> sizes(shape.begin(), shape.end());
    sizes.push_back(static_cast<std::size_t>(x.channels()));
    return sizes;
  };
  if (x.is_ragged()) {
    std::vector<xt::xarray<Scalar>> arrays;
    for (Index i = 0; i < x.size(); ++i) {
      arrays.push_back(xt::xarray<Scalar>::from_shape(extents(x.shape(i))));
      write_mapped(x[i], factors, arrays.back().data());
    }
    return Inputs<Scalar>(std::move(arrays));
  }
  std::vector<std::size_t> sizes = extents(x.shape());
  sizes.insert(sizes.begin(), static_cast<std::size_t>(x.size()));
  xt::xarray<Scalar> array = xt::xarray<Scalar>::from_shape(sizes);
  Scalar* next = array.data();
  for (Index i = 0; i < x.size(); ++i) {
    write_mapped(x[i], factors, next);
    next += x[i].size();
  }
  return Inputs<Scalar>(std::move(array));
}

}  // namespace

FeatureMap::FeatureMap(Matrix<double> factors) : factors_{std::move(factors)} {
  if (factors_.size() == 0) return;
  if (factors_.rows() != 1 && factors_.rows() != factors_.cols())
    throw ArgumentError(
        fmt::format("FeatureMap: expected factors [1, channels] or [channels, channels], got [{}, {}]",
                    factors_.rows(), factors_.cols()));
  require_finite(factors_, "FeatureMap", "the factors");
}

template <typename Scalar>
Inputs<Scalar> FeatureMap::apply(const Inputs<Scalar>& x) const {
  if (is_identity()) return x;
  const Index channels = factors_.cols();
  if (x.channels() != channels)
    throw ArgumentError(
        fmt::format("FeatureMap: expected inputs of {} channels, got {}", channels, x.channels()));
  Inputs<Scalar> mapped = mapped_numbers(x, factors_);
  if (x.is_masked())
    return mapped.is_ragged() ? Inputs<Scalar>(mapped, joined_mask_list<Scalar>({&x}))
                              : Inputs<Scalar>(mapped, joined_masks<Scalar>({&x}));
  return x.graphs().empty() ? mapped : Inputs<Scalar>(mapped, joined_graphs<Scalar>({&x}));
}

template Inputs<float> FeatureMap::apply(const Inputs<float>&) const;
template Inputs<double> FeatureMap::apply(const Inputs<double>&) const;

}  // namespace widelimit::gp
