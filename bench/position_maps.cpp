// What maps of positions cost beside a convolution with the same windows: images of 32 x 32 x 3 in float, both kernels,
// a pair and core. A map reads every entry whose positions its windows see, a convolution only those of equal places in
// two windows: so the times of an entry in front are compared too.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <limits>

#include "networks.hpp"
#include "widelimit/kernel/explain.hpp"
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
  const auto resize = [](Index size, ResizeMethod method, bool antialias = true) {
    return image_resize({.size = {size, size}, .method = method, .antialias = antialias});
  };
  const Layer up = conv({.filter = {3, 3}});
  return {
      {"slice, every second pixel", slice({{.step = 2}, {.step = 2}}), window(1, 2)},
      {"slice, 28 x 28 in the middle", slice({{2, 30, 1}, {2, 30, 1}}), window(5, 1)},
      {"nearest, to 16 x 16", resize(16, ResizeMethod::nearest), window(1, 2)},
      {"linear, to 16 x 16, no antialias", resize(16, ResizeMethod::linear, false), window(2, 2)},
      {"linear, to 16 x 16", resize(16, ResizeMethod::linear), window(4, 2)},
      {"cubic, to 16 x 16", resize(16, ResizeMethod::cubic), window(8, 2)},
      {"linear, to 8 x 8", resize(8, ResizeMethod::linear), window(8, 4)},
      {"mean of 3 x 3, edges normalised",
       average_pool({.window = {3, 3}, .strides = {2, 2}, .padding = Padding::same, .normalize_edges = true}),
       window(3, 2)},
      {"nearest, to 64 x 64", resize(64, ResizeMethod::nearest), up},
      {"linear, to 64 x 64", resize(64, ResizeMethod::linear), up},
      {"conv_transpose 3 x 3, strides 2",
       conv_transpose({.filter = {3, 3}, .strides = {2, 2}, .padding = Padding::same}), up}};
}

Network with(const Layer& layer) {
  const Layer first = layers::conv({.filter = {3, 3}, .bias_variance = 0.1});
  return Network(
      {first, layers::relu(), layer, layers::dense(), layers::relu(), layers::global_average_pool()});
}

/// Of the processor, the best of three.
double seconds_a_pair(const Network& network) {
  constexpr Index left_count = 4, right_count = 4;
  const auto left = images<float>(left_count), right = images<float>(right_count);
  std::clock_t best = std::numeric_limits<std::clock_t>::max();
  for (int turn = 0; turn < 3; ++turn) {
    const std::clock_t start = std::clock();
    static_cast<void>(gram<float>(network, left, right, {.threads = 1}));
    best = std::min(best, std::clock() - start);
  }
  return static_cast<double>(best) / CLOCKS_PER_SEC / static_cast<double>(left_count * right_count);
}

/// Of the first nonlinearity, the layer before it, or of the second, behind.
enum class Place { in_front, behind };

/// Entries of the covariance that a nonlinearity maps.
double entries_of(const Network& network, Place place) {
  constexpr Index side = 32, channels = 3;
  const Plan plan = explain<float>(network, {side, side}, channels, {}, 0);
  const auto is_map = [](const PlanLine& line) { return line.layer.find("relu") != std::string::npos; };
  const auto first = std::find_if(plan.lines.begin(), plan.lines.end(), is_map);
  return (place == Place::in_front ? first : std::find_if(first + 1, plan.lines.end(), is_map))->entries;
}

}  // namespace

int main() {
  fmt::print("{:34} {:>10} {:>12} {:>6} {:>12} {:>12} {:>6}\n", "map", "ms a pair", "convolution", "ratio",
             "ns an entry", "convolution", "ratio");
  for (const MapCase& map : map_cases()) {
    const Network mapped = with(map.map), convolved = with(map.convolution);
    const double seconds = seconds_a_pair(mapped), of_convolution = seconds_a_pair(convolved);
    // Maps upwards have most of their entries after them.
    const auto an_entry = [](const Network& network, double time) {
      return 1e9 * time / std::max(entries_of(network, Place::in_front), entries_of(network, Place::behind));
    };
    const double entry = an_entry(mapped, seconds),
                 entry_of_convolution = an_entry(convolved, of_convolution);
    fmt::print("{:34} {:10.3f} {:12.3f} {:6.2f} {:12.3f} {:12.3f} {:6.2f}\n", map.name, 1e3 * seconds,
               1e3 * of_convolution, seconds / of_convolution, entry, entry_of_convolution,
               entry / entry_of_convolution);
  }
  return 0;
}
