#include "kernel/run/range_search.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "widelimit/error.hpp"
#include "widelimit/kernel/position_covariances.hpp"

namespace widelimit {
namespace {

/// Every step of the search computes and keeps whole covariance matrices of the pair. This many entries take 128 MiB
/// in double for each kernel.
constexpr double most_covariances = 0x1p24;

template <typename Scalar>
double positions(const Inputs<Scalar>& x) {
  return static_cast<double>(position_count(x.shape(0)));
}

}  // namespace

template <typename Scalar>
std::optional<std::string> layer_out_of_range(const Network& network, const Inputs<Scalar>& left,
                                              const Inputs<Scalar>& right, bool same_input) {
  if (positions(left) * positions(right) > most_covariances) return std::nullopt;
  const Layers& layers = network.layers();
  const auto is_finite_after = [&](std::size_t count) {
    const Network front(Layers(layers.begin(), layers.begin() + static_cast<Index>(count)));
    try {
      const auto kernels = same_input ? position_covariances(front, left, 0, 0)
                                      : position_covariances(front, left, 0, right, 0);
      return kernels.nngp.allFinite() && kernels.ntk.allFinite();
    } catch (const NumericalError&) {
      return false;
    }
  };
  // Kernels are finite after the first `finite` layers and not finite after the first `broken` ones. Halving the
  // interval finds a layer at which they change, with a number of chains that is the logarithm of the depth.
  std::size_t finite = 0, broken = layers.size();
  if (!is_finite_after(finite) || is_finite_after(broken)) return std::nullopt;
  while (finite + 1 < broken) {
    const std::size_t middle = finite + (broken - finite) / 2;
    (is_finite_after(middle) ? finite : broken) = middle;
  }
  return fmt::format("layers[{}] ({})", finite, layers[finite].kind());
}

template std::optional<std::string> layer_out_of_range(const Network&, const Inputs<float>&,
                                                       const Inputs<float>&, bool);
template std::optional<std::string> layer_out_of_range(const Network&, const Inputs<double>&,
                                                       const Inputs<double>&, bool);

}  // namespace widelimit
