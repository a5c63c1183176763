#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

/// One plane (or row of pairs) of nngp and ntk; ntk is null when it is not computed.
template <typename Scalar>
struct Plane {
  Scalar* nngp;
  Scalar* ntk;
};

/// The plane that begins `entries` numbers later.
template <typename Scalar>
Plane<Scalar> operator+(const Plane<Scalar>& plane, std::ptrdiff_t entries) {
  return {plane.nngp + entries, plane.ntk != nullptr ? plane.ntk + entries : nullptr};
}

template <typename Scalar>
void fill_plane(const Plane<Scalar>& plane, std::size_t size, Scalar nngp, Scalar ntk) {
  std::fill_n(plane.nngp, size, nngp);
  if (plane.ntk != nullptr) std::fill_n(plane.ntk, size, ntk);
}

template <typename Scalar>
void copy_plane(const Plane<Scalar>& source, std::size_t size, const Plane<Scalar>& target) {
  std::copy_n(source.nngp, size, target.nngp);
  if (target.ntk != nullptr) std::copy_n(source.ntk, size, target.ntk);
}

/// A dense layer: K' = scale K + bias, T' = K' + scale T, where T is zero if the source has none. The source and the
/// target may be one plane.
template <typename Scalar>
void dense_plane(double scale, double bias, const Plane<Scalar>& source, std::size_t size,
                 const Plane<Scalar>& target) {
  const numerics::Convolution dense{
      .axes = {numerics::Taps{0, 1, 1}}, .axis_count = 1, .scale = scale, .bias = bias};
  numerics::linear_rows<Scalar>().convolve(dense, source.nngp, source.ntk, nullptr, target.nngp, target.ntk,
                                           size);
}

/// target = sum over the sources, each times its factor; `source(i)` is the i-th plane. If there are two sources, the
/// target may be one of them.
template <typename Scalar, typename Source>
void sum_planes(const Source& source, const std::vector<double>& factors, std::size_t size,
                const Plane<Scalar>& target) {
  const auto& rows = numerics::linear_rows<Scalar>();
  const auto factor = [&](std::size_t i) { return static_cast<Scalar>(factors[i]); };
  const auto sum_kernel = [&](Scalar* Plane<Scalar>::*kernel) {
    if (factors.size() == 1) {
      std::fill_n(target.*kernel, size, Scalar{0});
      return rows.add(source(0).*kernel, factor(0), target.*kernel, size);
    }
    rows.weighted_sum(source(0).*kernel, source(1).*kernel, {factor(0), factor(1)}, target.*kernel, size);
    for (std::size_t i = 2; i < factors.size(); ++i)
      rows.add(source(i).*kernel, factor(i), target.*kernel, size);
  };
  sum_kernel(&Plane<Scalar>::nngp);
  if (target.ntk != nullptr) sum_kernel(&Plane<Scalar>::ntk);
}

/// Multiplies by one more independent branch: (K, T) becomes (K K_i, T K_i + K T_i).
template <typename Scalar>
void multiply_plane(const Plane<Scalar>& source, std::size_t size, const Plane<Scalar>& target) {
  if (target.ntk != nullptr)
    for (std::size_t k = 0; k < size; ++k)
      target.ntk[k] = target.ntk[k] * source.nngp[k] + target.nngp[k] * source.ntk[k];
  // The NTK above needs K before it is multiplied.
  for (std::size_t k = 0; k < size; ++k) target.nngp[k] *= source.nngp[k];
}

/// target = factor times the product of `count` sources; `source(i)` is the i-th plane and must not be the target.
template <typename Scalar, typename Source>
void multiply_planes(const Source& source, std::size_t count, double factor, std::size_t size,
                     const Plane<Scalar>& target) {
  fill_plane(target, size, static_cast<Scalar>(factor), Scalar{0});
  for (std::size_t i = 0; i < count; ++i) multiply_plane(source(i), size, target);
}

}  // namespace widelimit
