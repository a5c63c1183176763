#include "kernel/inputs/typical_inputs.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernel/inputs/graph_inputs.hpp"
#include "numerics/standard_normal.hpp"

namespace widelimit {
namespace {

constexpr std::uint64_t image_stream = 0x736d6f6f7468;
constexpr std::size_t axes_of_inputs = 3;

/// A plane wave through an image, or an edge: a wave that is cut off to its sign.
struct Wave {
  std::array<double, axes_of_inputs> frequency{};  ///< Radians a position, along each axis.
  double phase;
  bool is_edge;

  [[nodiscard]] double at(const std::array<double, axes_of_inputs>& position) const {
    double angle = phase;
    for (std::size_t axis = 0; axis < axes_of_inputs; ++axis) angle += frequency[axis] * position[axis];
    const double value = std::sin(angle);
    // The slope keeps an edge about a position wide, as a lens does.
    constexpr double sharpness = 4;
    return is_edge ? std::tanh(sharpness * value) : value;
  }
};

/// A wave in a random direction. Frequencies are drawn over their logarithm, from half a period over the image to a
/// period of four positions, more of the slow ones; only these may be edges, whose harmonics are the fast ones. The
/// numbers below are such that states and pairs of attention cost between those of CIFAR-10 and those of the images
/// that data::generate_synthetic_images() makes, both standardised pixel by pixel: within a tenth of either.
Wave draw_wave(const Shape& shape, numerics::RandomStream& random) {
  const double longest = static_cast<double>(*std::max_element(shape.begin(), shape.end()));
  const double lowest = std::numbers::pi / longest, highest = std::max(std::numbers::pi / 2, 2 * lowest);
  constexpr double slowness = 1.75, edges = 0.25;
  const double size = lowest * std::pow(highest / lowest, std::pow(random.uniform(), slowness));
  Wave wave{.frequency = {}, .phase = 2 * std::numbers::pi * random.uniform(), .is_edge = false};
  double norm = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    wave.frequency[axis] = random.normal();
    norm += wave.frequency[axis] * wave.frequency[axis];
  }
  for (double& frequency : wave.frequency) frequency *= size / std::max(std::sqrt(norm), 1e-9);
  wave.is_edge = size < std::numbers::pi / 8 && random.uniform() < edges;
  return wave;
}

/// One image [positions, channels]. Channels share most of their waves, as the colours of photographs do.
template <typename Scalar>
void paint(Scalar* image, const Shape& shape, Index channels, numerics::RandomStream random) {
  constexpr std::size_t shared_waves = 7, own_waves = 2;
  constexpr double own_share = 0.3, noise_share = 0.02;
  const auto draw = [&](std::size_t count) {
    std::vector<Wave> waves;
    for (std::size_t w = 0; w < count; ++w) waves.push_back(draw_wave(shape, random));
    return waves;
  };
  const std::vector<Wave> shared = draw(shared_waves);
  std::vector<std::vector<Wave>> own;
  for (Index channel = 0; channel < channels; ++channel) own.push_back(draw(own_waves));
  const auto sum = [](const std::vector<Wave>& waves, const std::array<double, axes_of_inputs>& position) {
    double total = 0;
    for (const Wave& wave : waves) total += wave.at(position);
    return total / std::sqrt(static_cast<double>(waves.size()) / 2);
  };
  const Index positions = position_count(shape);
  for (Index p = 0; p < positions; ++p) {
    std::array<double, axes_of_inputs> position{};
    Index rest = p;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis])
      position[axis] = static_cast<double>(rest % shape[axis]);
    const double common = sum(shared, position);
    for (Index channel = 0; channel < channels; ++channel)
      image[p * channels + channel] =
          static_cast<Scalar>(common + own_share * sum(own[static_cast<std::size_t>(channel)], position) +
                              noise_share * random.normal());
  }
}

}  // namespace

template <typename Scalar>
Inputs<Scalar> typical_inputs(Index count, const Shape& shape, Index channels) {
  std::vector<Index> dimensions{count};
  dimensions.insert(dimensions.end(), shape.begin(), shape.end());
  dimensions.push_back(channels);
  if (shape.size() < 2)
    return with_drawn_graphs<Scalar>(numerics::standard_normal<Scalar>(dimensions, numerics::RandomStream(0)),
                                     0);
  auto images = xt::xarray<Scalar>::from_shape({dimensions.begin(), dimensions.end()});
  const Index numbers = position_count(shape) * channels;
  for (Index i = 0; i < count; ++i)
    paint(images.data() + i * numbers, shape, channels,
          numerics::RandomStream(static_cast<std::uint64_t>(i), image_stream));
  return images;
}

template Inputs<float> typical_inputs(Index, const Shape&, Index);
template Inputs<double> typical_inputs(Index, const Shape&, Index);

}  // namespace widelimit
