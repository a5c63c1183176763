#include "kernel/run/mirror_symmetry.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>
#include <xtensor/xview.hpp>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit {
namespace {

/// All pairs of shapes are computed. Batches of more shapes than this are treated as if left and right differed,
/// which is correct for every network but slower.
constexpr std::size_t most_shapes = 8;
/// Three inputs have the lengths 1/2, 1 and 2, and three pairs of different inputs.
constexpr Index inputs_of_a_shape = 3;
/// The tolerance is relative to the variances. Deep networks round to 1e-13; a pixel at an edge that a window
/// contains on one side only weighs far more.
constexpr double equality_tolerance = 1e-11;

template <typename Scalar>
std::set<Shape> shapes_of(const Inputs<Scalar>& x) {
  std::set<Shape> shapes;
  for (Index i = 0; i < (x.is_ragged() ? x.size() : 1); ++i) shapes.insert(x.shape(i));
  return shapes;
}

/// Random inputs [3, spatial..., C] of different lengths. Layers that are homogeneous would give the same answer at
/// one length, but not every layer is.
xt::xarray<double> random_array(const Shape& shape, Index channels, numerics::RandomStream& random) {
  std::vector<std::size_t> sizes{static_cast<std::size_t>(inputs_of_a_shape)};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  sizes.push_back(static_cast<std::size_t>(channels));
  xt::xarray<double> array = xt::xarray<double>::from_shape(sizes);
  const Index numbers = position_count(shape) * channels;
  for (Index i = 0; i < inputs_of_a_shape; ++i)
    for (Index k = 0; k < numbers; ++k)
      array.data()[i * numbers + k] = std::ldexp(random.normal(), static_cast<int>(i) - 1);
  return array;
}

/// [3, spatial...]: all positions of the first input; three quarters of the others', and one at least.
xt::xarray<bool> random_masks(const Shape& shape, numerics::RandomStream& random) {
  std::vector<std::size_t> sizes{static_cast<std::size_t>(inputs_of_a_shape)};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  xt::xarray<bool> masks = xt::ones<bool>(sizes);
  const Index positions = position_count(shape);
  for (Index i = 1; i < inputs_of_a_shape; ++i) {
    const auto kept = static_cast<Index>(random.below(static_cast<std::uint64_t>(positions)));
    for (Index k = 0; k < positions; ++k) masks.data()[i * positions + k] = random.below(4) != 0 || k == kept;
  }
  return masks;
}

Inputs<double> random_ragged(const std::set<Shape>& shapes, Index channels, numerics::RandomStream& random) {
  std::vector<xt::xarray<double>> arrays;
  for (const Shape& shape : shapes) {
    const auto some = random_array(shape, channels, random);
    for (std::size_t i = 0; i < some.shape(0); ++i) arrays.emplace_back(xt::view(some, i));
  }
  return arrays;
}

template <typename Scalar>
Inputs<double> random_inputs_like(const Inputs<Scalar>& x, const std::set<Shape>& shapes) {
  numerics::RandomStream random(/*seed=*/0);
  if (x.is_ragged()) return random_ragged(shapes, x.channels(), random);
  Inputs<double> inputs = random_array(x.shape(), x.channels(), random);
  return x.is_masked() ? Inputs<double>(inputs, random_masks(x.shape(), random)) : inputs;
}

bool kernels_are_equal(const Matrix<double>& kernel, const Matrix<double>& flipped_kernel) {
  for (Index i = 0; i < kernel.rows(); ++i)
    for (Index j = 0; j < kernel.cols(); ++j) {
      const double scale = std::sqrt(kernel(i, i)) * std::sqrt(kernel(j, j));
      if (!(std::abs(kernel(i, j) - flipped_kernel(i, j)) <= equality_tolerance * scale)) return false;
    }
  return true;
}

bool treats_alike(const Network& network, const Inputs<double>& x, const MirrorSymmetry::Flip& flip,
                  const GramOptions& options) {
  try {
    const auto straight = gram(network, x, options), mirrored = gram(network, flip(x), options);
    return kernels_are_equal(straight.nngp, mirrored.nngp) && kernels_are_equal(straight.ntk, mirrored.ntk);
  } catch (const NumericalError&) {
    return false;  // The data may be in range. Flipping both sides is correct for every network.
  } catch (const NetworkError&) {
    return false;  // A mask leaves nothing, or shapes cannot be paired.
  }
}

}  // namespace

template <typename Scalar>
MirrorSymmetry::MirrorSymmetry(const Network& network, const Inputs<Scalar>& like, const Flip& flip,
                               GramOptions options)
    : masked_{like.is_masked()} {
  std::set<Shape> shapes = shapes_of(like);
  if (shapes.size() > most_shapes || (like.is_ragged() && like.is_masked())) return;
  options.kernels = Kernels::both;
  // Whether kernels are equal is a matter of the network; not every device has double.
  options.device.clear();
  options.variances = nullptr;
  options.shortened_attention = nullptr;
  options.progress = nullptr;
  options.seconds_per_line = nullptr;
  if (treats_alike(network, random_inputs_like(like, shapes), flip, options)) shapes_ = std::move(shapes);
}

template <typename Scalar>
bool MirrorSymmetry::holds_for(const Inputs<Scalar>& x) const {
  if (x.is_masked() && !masked_) return false;
  const std::set<Shape> shapes = shapes_of(x);
  return std::includes(shapes_.begin(), shapes_.end(), shapes.begin(), shapes.end());
}

template MirrorSymmetry::MirrorSymmetry(const Network&, const Inputs<float>&, const Flip&, GramOptions);
template MirrorSymmetry::MirrorSymmetry(const Network&, const Inputs<double>&, const Flip&, GramOptions);
template bool MirrorSymmetry::holds_for(const Inputs<float>&) const;
template bool MirrorSymmetry::holds_for(const Inputs<double>&) const;

}  // namespace widelimit
