// The transpose of sums over windows, against a dense matrix.
#include "kernel/backends/cpu/backward/planes/window_adjoint.hpp"

#include <doctest/doctest.h>

#include <random>

#include "kernel/backends/cpu/planes/engine_program.hpp"

namespace widelimit::testing::window_adjoint_test {
namespace {

/// The number of times that entry a of the plane after a convolution reads entry s of the one before it: 0 or 1.
bool reads(const AxisWindows& axis, Index a, Index s) {
  const Index first = axis.first_of_all + axis.stride * a;
  return s >= first && s < first + axis.taps;
}

void check_transpose(const std::array<AxisWindows, 3>& windows, std::mt19937& generator) {
  const Index3 source{windows[0].source, windows[1].source, windows[2].source},
      target{windows[0].target, windows[1].target, windows[2].target};
  const std::vector<double> given = normal_numbers(product(target), generator);
  const std::vector<double> before = normal_numbers(product(source), generator);
  std::vector<double> expected = before, spread = before;
  for (Index a = 0; a < product(target); ++a)
    for (Index s = 0; s < product(source); ++s) {
      const Index3 to{a / (target[1] * target[2]), a / target[2] % target[1], a % target[2]};
      const Index3 from{s / (source[1] * source[2]), s / source[2] % source[1], s % source[2]};
      bool all = true;
      for (std::size_t k = 0; k < 3; ++k) all = all && reads(windows[k], to[k], from[k]);
      if (all) expected[static_cast<std::size_t>(s)] += given[static_cast<std::size_t>(a)];
    }
  WindowAdjoint<double> adjoint;
  adjoint.spread(windows, given.data(), spread.data());
  for (std::size_t s = 0; s < spread.size(); ++s) CHECK(spread[s] == doctest::Approx(expected[s]).scale(1));
}

TEST_CASE("WindowAdjoint: the transpose, along any axes, of any stride, over both ends") {
  std::mt19937 generator(3);
  const AxisWindows same{1, 1, 0, 4, 4}, padded{3, 1, -1, 5, 5}, strided{2, 3, -2, 9, 4}, far{2, 2, 3, 5, 3};
  const AxisWindows nothing{2, 1, 7, 4, 3};
  for (const auto& windows : {std::array{same, same, same}, std::array{padded, strided, far},
                              std::array{same, padded, same}, std::array{strided, same, padded},
                              std::array{far, same, strided}, std::array{padded, nothing, padded}})
    check_transpose(windows, generator);
}

TEST_CASE("windows_between: between planes of an offset, as the positions of both inputs have it") {
  const Window window{{3, 2}, {2, 1}, Padding::same};
  const Window3 axes(window);
  const Index3 left{1, 7, 5}, right{1, 6, 4};
  const Index3 left_front = axes.front(left), right_front = axes.front(right);
  const Index3 left_after = axes.output(left), right_after = axes.output(right);
  for (Index y = -2; y <= 2; ++y)
    for (Index z = -2; z <= 2; ++z) {
      const auto after = PlacedPlane::alone({0, y, z}, left_after, right_after);
      // Position a of the left input reads stride * a - front: offsets follow.
      Index3 offset{0, 0, 0};
      for (std::size_t k = 1; k < 3; ++k)
        offset[k] = axes.stride[k] * (k == 1 ? y : z) + left_front[k] - right_front[k];
      const auto before = PlacedPlane::alone(offset, left, right);
      if (after.empty() || before.empty()) continue;
      const auto windows = windows_between(axes, left_front, before, after);
      for (std::size_t k = 0; k < 3; ++k)
        for (Index a = 0; a < after.layout.extent[k]; ++a)
          for (Index s = 0; s < before.layout.extent[k]; ++s) {
            const Index position = after.axis[k].origin[0] + a, source = before.axis[k].origin[0] + s;
            const Index first = axes.stride[k] * position - left_front[k];
            CHECK(reads(windows[k], a, s) == (source >= first && source < first + axes.size[k]));
          }
    }
}

}  // namespace
}  // namespace widelimit::testing::window_adjoint_test
