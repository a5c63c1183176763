// What maps of positions cost beside a convolution with the same windows: images of 32 x 32 x 3 in float, both kernels,
// a pair and core. A map that stays on planes of offsets costs about as much; others are matrices of a pair.
#include <fmt/format.h>

#include "networks.hpp"
#include "timing.hpp"
#include "widelimit/layers/positions.hpp"

namespace {

using namespace benchmarks;

struct MapCase {
  const char* name;
  Layer map;
  Layer convolution;  ///< With the map's windows and strides.
};

std::vector<MapCase> map_cases() {
  using namespace layers;
  const auto window = [](Index size, Index stride) {
    return conv({.filter = {size, size}, .strides = {stride, stride}, .padding = Padding::valid});
  };
  return {{"slice, every second pixel", slice({{.step = 2}, {.step = 2}}), window(1, 2)},
          {"slice, 28 x 28 in the middle", slice({{2, 30, 1}, {2, 30, 1}}), window(5, 1)},
          {"nearest, to 16 x 16", image_resize({.size = {16, 16}, .method = ResizeMethod::nearest}),
           window(1, 2)},
          {"linear, to 16 x 16", image_resize({.size = {16, 16}}), window(4, 2)},
          {"linear, to 16 x 16, no antialias", image_resize({.size = {16, 16}, .antialias = false}),
           window(2, 2)}};
}

Network with(const Layer& layer) {
  const Layer first = layers::conv({.filter = {3, 3}, .bias_variance = 0.1});
  return Network(
      {first, layers::relu(), layer, layers::dense(), layers::relu(), layers::global_average_pool()});
}

double seconds_a_pair(const Network& network) {
  constexpr Index left_count = 4, right_count = 4;
  const auto left = images<float>(left_count), right = images<float>(right_count);
  return best_seconds_of([&] { static_cast<void>(gram<float>(network, left, right, {.threads = 1})); }) /
         static_cast<double>(left_count * right_count);
}

}  // namespace

int main() {
  fmt::print("{:36} {:>12} {:>12} {:>6}\n", "map", "ms a pair", "convolution", "ratio");
  for (const MapCase& map : map_cases()) {
    const double mapped = seconds_a_pair(with(map.map)), convolved = seconds_a_pair(with(map.convolution));
    fmt::print("{:36} {:12.3f} {:12.3f} {:6.2f}\n", map.name, 1e3 * mapped, 1e3 * convolved,
               mapped / convolved);
  }
  return 0;
}
