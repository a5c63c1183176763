// Convolutions on planes, against sums over the windows of a whole matrix of covariances.
#include "kernel/backends/cpu/planes/plane_windows.hpp"

#include <doctest/doctest.h>

#include <random>
#include <vector>

#include "kernel/backends/cpu/planes/affine.hpp"
#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/cpu/planes/plane_numbers.hpp"
#include "kernel/vector_padding.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// d x d' covariances of a pair.
struct Covariances {
  Index3 left;
  Index3 right;
  std::vector<double> entries;

  [[nodiscard]] bool has(const Index3& a, const Index3& b) const {
    for (std::size_t k = 0; k < 3; ++k)
      if (a[k] < 0 || b[k] < 0 || a[k] >= left[k] || b[k] >= right[k]) return false;
    return true;
  }
  [[nodiscard]] double at(const Index3& a, const Index3& b) const {
    return entries[static_cast<std::size_t>(position_number(a, left) * product(right) +
                                            position_number(b, right))];
  }
};

/// Room for planes, with margins in front and behind.
class PlaneBuffer {
 public:
  PlaneBuffer(Index margin, Index length)
      : front_{padded(margin) + row_padding},
        numbers_(static_cast<std::size_t>(2 * front_ + padded(length) + 2 * row_padding)) {}
  [[nodiscard]] double* data() { return numbers_.data() + front_; }

 private:
  Index front_;
  std::vector<double> numbers_;
};

/// The sum over the window of output positions a and b.
double window_sum(const Affine& affine, const Covariances& input, const Index3& a, const Index3& b) {
  double sum = 0;
  for_each_row(affine.window.size, [&](Index i, Index j) {
    for (Index k = 0; k < affine.window.size[2]; ++k) {
      const Index3 tap{i, j, k};
      Index3 from, to;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        from[axis] = affine.window.stride[axis] * a[axis] + tap[axis] - affine.left_front[axis];
        to[axis] = affine.window.stride[axis] * b[axis] + tap[axis] - affine.right_front[axis];
      }
      if (input.has(from, to)) sum += input.at(from, to);
    }
  });
  return sum;
}

struct ConvolutionCase {
  Window window;
  Index3 left;
  Index3 right;
};

/// Convolves the planes of all offsets of a layer, two stacked ones each, and compares every entry.
void check_convolution(const ConvolutionCase& layer, bool shifted, std::mt19937& generator) {
  const Affine affine({layer.window, 1.7, 0.3}, layer.left, layer.right);
  REQUIRE((affine.kind == AffineKind::shifted) == shifted);
  const auto covariances = [&] {
    return Covariances{layer.left, layer.right,
                       normal_numbers(product(layer.left) * product(layer.right), generator)};
  };
  const std::array<Covariances, 2> nngp{covariances(), covariances()}, ntk{covariances(), covariances()};
  const Index3 out_left = affine.window.output(layer.left), out_right = affine.window.output(layer.right);
  ChainGeometry chain;
  for (std::size_t k = 0; k < 3; ++k) chain.guard[k] = shifted ? affine.window.size[k] / 2 : 0;
  chain.maps = {{affine.window.stride, affine.offset_of_diagonal()}, {}};
  Offsets::all(out_left, out_right).for_each([&](const Index3& offset) {
    PlacedPlane from, to;
    const PlaneOffsets offsets{{{{offset[0], 0}, 1}, {{offset[1], 0}, 1}, {{offset[2], 0}, 1}}};
    from.place(chain, 0, offsets, layer.left, layer.right);
    to.place(chain, 1, offsets, out_left, out_right);
    if (from.empty() || to.empty()) return;
    const Index length = from.layout.length, out_length = to.layout.length, margin = from.layout.margin();
    PlaneBuffer source(margin, 2 * length), source_ntk(margin, 2 * length), target(margin, 2 * out_length),
        target_ntk(margin, 2 * out_length), scratch(margin, 2 * length), scratch_ntk(margin, 2 * length);
    for (Index n = 0; n < 2; ++n)
      for_each_entry(from, [&](const Index3& a, const Index3& b, Index place) {
        source.data()[n * length + place] = nngp[static_cast<std::size_t>(n)].at(a, b);
        source_ntk.data()[n * length + place] = ntk[static_cast<std::size_t>(n)].at(a, b);
      });
    const Plane<double> in{source.data(), source_ntk.data()}, out{target.data(), target_ntk.data()};
    if (shifted)
      convolve_shifted(affine.window, affine.left_front, from.layout, 2, affine.scale, affine.bias, in, out,
                       {scratch.data(), scratch_ntk.data()});
    else
      convolve_strided(strided_windows(affine, from, to), {2, length, out_length}, in, out);
    for (Index n = 0; n < 2; ++n)
      for_each_entry(to, [&](const Index3& a, const Index3& b, Index place) {
        const auto pair = static_cast<std::size_t>(n);
        const double expected = affine.scale * window_sum(affine, nngp[pair], a, b) + affine.bias;
        const double expected_ntk = expected + affine.scale * window_sum(affine, ntk[pair], a, b);
        CHECK(target.data()[n * out_length + place] == doctest::Approx(expected).epsilon(1e-12));
        CHECK(target_ntk.data()[n * out_length + place] == doctest::Approx(expected_ntk).epsilon(1e-12));
      });
  });
}

}  // namespace

TEST_CASE("shifted sums are those over windows") {
  std::mt19937 generator(11);
  check_convolution({{{3}, {1}, Padding::same}, {1, 1, 9}, {1, 1, 9}}, true, generator);
  check_convolution({{{3, 3}, {1, 1}, Padding::same}, {1, 5, 6}, {1, 5, 6}}, true, generator);
  check_convolution({{{2, 5}, {1, 1}, Padding::same}, {1, 4, 7}, {1, 6, 5}}, true, generator);
  check_convolution({{{3, 1, 2}, {1, 1, 1}, Padding::same}, {3, 2, 4}, {3, 2, 4}}, true, generator);
}

TEST_CASE("windows of any stride and padding") {
  std::mt19937 generator(12);
  check_convolution({{{3}, {2}, Padding::same}, {1, 1, 9}, {1, 1, 6}}, false, generator);
  check_convolution({{{3, 3}, {2, 2}, Padding::same}, {1, 8, 6}, {1, 8, 6}}, false, generator);
  check_convolution({{{2, 3}, {1, 1}, Padding::valid}, {1, 5, 6}, {1, 4, 7}}, false, generator);
  check_convolution({{{1, 3}, {3, 2}, Padding::valid}, {1, 7, 8}, {1, 7, 8}}, false, generator);
  check_convolution({{{2, 2, 2}, {1, 2, 2}, Padding::same}, {2, 4, 4}, {3, 4, 5}}, false, generator);
}

TEST_CASE("guards are cleared and nothing else is") {
  ChainGeometry chain;
  chain.guard = {0, 2, 1};
  chain.maps = {{}};
  const Index3 sizes{1, 4, 5};
  PlacedPlane plane;
  plane.place(chain, 0, {{{{0, 0}, 1}, {{1, -3}, 2}, {{2, -3}, 2}}}, sizes, sizes);
  const Index length = plane.layout.length;
  std::vector<double> numbers(static_cast<std::size_t>(2 * length), 1.0), expected(numbers.size(), 0.0);
  for (Index n = 0; n < 2; ++n)
    for_each_entry(plane, [&](const Index3& /*a*/, const Index3& /*b*/, Index place) {
      expected[static_cast<std::size_t>(n * length + place)] = 1;
    });
  clear_guards(plane.layout, 2, Plane<double>{numbers.data(), nullptr});
  CHECK(numbers == expected);
}

TEST_CASE("a box of an array is packed with zero guards") {
  std::mt19937 generator(13);
  const Index3 sizes{2, 5, 7};
  std::vector<double> array = normal_numbers(product(sizes) + 2 * row_padding, generator);
  const PlaneLayout layout(Index3{2, 3, 4}, Index3{1, 1, 2});
  std::vector<double> plane(static_cast<std::size_t>(layout.length + 2 * row_padding), 9.0);
  const Index3 origin{0, 1, 2};
  pack_plane(array.data() + position_number(origin, sizes), {sizes[1] * sizes[2], sizes[2]}, layout,
             plane.data());
  std::vector<double> expected(static_cast<std::size_t>(layout.length), 0.0);
  for_each_row(layout.extent, [&](Index x, Index y) {
    for (Index z = 0; z < layout.extent[2]; ++z)
      expected[static_cast<std::size_t>(layout.at(x, y) + z)] = array[static_cast<std::size_t>(
          position_number({origin[0] + x, origin[1] + y, origin[2] + z}, sizes))];
  });
  plane.resize(expected.size());
  CHECK(plane == expected);
}
