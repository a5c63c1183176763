#pragma once

#include <vector>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/cpu/planes/placed_plane.hpp"

/// Covariances of pairs as matrices, and the planes that they are cut into.
namespace widelimit::testing {

/// Random covariances between the positions of some pairs of inputs.
class PairCovariances {
 public:
  PairCovariances(const Index3& left, const Index3& right, Index pairs, std::mt19937& generator)
      : left_{left},
        right_{right},
        numbers_{normal_numbers(pairs * product(left) * product(right), generator)} {}

  [[nodiscard]] double at(Index pair, const Index3& a, const Index3& b) const {
    const Index row = pair * product(left_) + position_number(a, left_);
    return numbers_[static_cast<std::size_t>(row * product(right_) + position_number(b, right_))];
  }

 private:
  Index3 left_, right_;
  std::vector<double> numbers_;
};

/// Calls body(a, b, place) for the entries of a plane: positions of the left and the right input, and where
/// the entry lies in the plane.
template <typename Body>
void for_each_entry(const PlacedPlane& plane, const Body& body) {
  plane.for_each_piece([&](const Box& box, Index begin) {
    for_each_row(box.extent, [&](Index x, Index y) {
      for (Index z = 0; z < box.extent[2]; ++z) {
        const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
        const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
        body(a, b, begin + plane.layout.at(x, y) + z);
      }
    });
  });
}

/// The planes of `count` pairs one after the other, with zero guards, and a margin on both sides.
class StackOfPlanes {
 public:
  StackOfPlanes(const PlacedPlane& plane, Index count)
      : length_{plane.layout.length},
        margin_{plane.layout.margin() + row_padding},
        numbers_(static_cast<std::size_t>(count * length_ + 2 * margin_)) {}

  void fill(const PlacedPlane& plane, const PairCovariances& covariances, Index first_pair, Index count) {
    for (Index n = 0; n < count; ++n)
      for_each_entry(plane, [&](const Index3& a, const Index3& b, Index place) {
        planes()[n * length_ + place] = covariances.at(first_pair + n, a, b);
      });
  }
  [[nodiscard]] double* planes() { return numbers_.data() + margin_; }
  [[nodiscard]] double at(Index number, Index place) const {
    return numbers_[static_cast<std::size_t>(margin_ + number * length_ + place)];
  }
  /// Puts a number everywhere.
  void fill_with(double number) { std::fill(numbers_.begin(), numbers_.end(), number); }

 private:
  Index length_, margin_;
  std::vector<double> numbers_;
};

/// Calls body(plane) for the planes of a step's root that have entries, and end_group() after those that
/// agree in their offset along the last axis.
template <typename Body, typename EndGroup>
void for_each_root_plane(const EngineProgram& engine, std::size_t step, const Body& body,
                         const EndGroup& end_group) {
  const PairGeometry& geometry = engine.pair.geometry;
  const ChainGeometry& chain = geometry.chains.at(step);
  const NodeId root = engine.plane_step(step).chain.root;
  for (const AxisOffsets& z : chain.offsets[2]) {
    for (const AxisOffsets& x : chain.offsets[0])
      for (const AxisOffsets& y : chain.offsets[1]) {
        PlacedPlane plane;
        plane.place(chain, chain.maps.size() - 1, {x, y, z}, geometry.left_sizes[root],
                    geometry.right_sizes[root]);
        if (!plane.empty()) body(plane);
      }
    end_group();
  }
}

}  // namespace widelimit::testing
