#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <variant>
#include <vector>

#include "kernel/backends/cpu/planes/pair_stores.hpp"
#include "kernel/backends/cpu/planes/plane_numbers.hpp"

namespace widelimit::testing {

/// The step that ends in a node of this kind; the test fails where the program has none.
template <typename Node>
std::size_t step_ending_in(const Program& program) {
  for (std::size_t s = 0; s < program.steps.size(); ++s)
    if (const auto* plane = std::get_if<PlaneStep>(&program.steps[s]))
      if (std::holds_alternative<Node>(program.graph.nodes[plane->target].operation)) return s;
  FAIL("no such step");
  return 0;
}

/// Random covariances of some pairs, which a pooling or a map is fed plane by plane, and the store that it writes to.
class PlaneFeed {
 public:
  PlaneFeed(const EngineProgram& engine, std::size_t step, Index pairs, unsigned seed)
      : generator_{seed},
        engine_{engine},
        step_{step},
        pairs_{pairs},
        nngp_(left_before(), right_before(), pairs, generator_),
        ntk_(left_before(), right_before(), pairs, generator_),
        store_(static_cast<std::size_t>(pairs * engine.pair.stores.size), 7.0) {}

  [[nodiscard]] const EngineProgram& engine() const { return engine_; }
  [[nodiscard]] NodeId target() const { return engine_.plane_step(step_).target; }
  [[nodiscard]] const Index3& left_before() const { return geometry().left_sizes[before()]; }
  [[nodiscard]] const Index3& right_before() const { return geometry().right_sizes[before()]; }
  [[nodiscard]] const Index3& left_after() const { return geometry().left_sizes[target()]; }
  [[nodiscard]] const Index3& right_after() const { return geometry().right_sizes[target()]; }

  /// Where the results of a pair stand.
  [[nodiscard]] Plane<double> result(Index pair) {
    return PairStores<double>(engine_.pair, store_.data()).at(target(), pair);
  }

  /// Adds all planes to `consumer`, `at_once` pairs in a stack, and does so twice: nothing is left of the tile before.
  template <typename Consumer, typename EndGroup>
  void feed(Consumer& consumer, Index at_once, const EndGroup& end_group) const {
    for (int tile = 0; tile < 2; ++tile) {
      consumer.begin_tile(pairs_);
      for_each_root_plane(
          engine_, step_,
          [&](const PlacedPlane& plane) {
            consumer.place(plane.axis, plane.layout);
            for (Index pair = 0; pair < pairs_; pair += at_once) {
              const Index count = std::min(at_once, pairs_ - pair);
              StackOfPlanes nngp(plane, count), ntk(plane, count);
              nngp.fill(plane, nngp_, pair, count);
              ntk.fill(plane, ntk_, pair, count);
              consumer.add(pair, count, {nngp.planes(), ntk.planes()});
            }
          },
          end_group);
    }
  }

  /// check(covariances before, pair, results after) for both kernels of every pair.
  template <typename Check>
  void check_results(const Check& check) {
    for (Index pair = 0; pair < pairs_; ++pair) {
      const Plane<double> after = result(pair);
      check(nngp_, pair, after.nngp);
      check(ntk_, pair, after.ntk);
    }
  }

  /// body(a, b, place) for every entry that is demanded of a result: its positions, and where it stands.
  template <typename Body>
  void for_each_demanded(const Body& body) const {
    const StoreLayout& layout = engine_.pair.stores.layouts[target()];
    geometry().demanded[target()].for_each([&](const Index3& offset) {
      const Box box(left_after(), right_after(), offset);
      if (box.empty()) return;
      for_each_row(box.extent, [&](Index x, Index y) {
        for (Index z = 0; z < box.extent[2]; ++z) {
          const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
          const Index3 b{a[0] + offset[0], a[1] + offset[1], a[2] + offset[2]};
          body(a, b, layout.entry(a, b));
        }
      });
    });
  }

 private:
  [[nodiscard]] const PairGeometry& geometry() const { return engine_.pair.geometry; }
  [[nodiscard]] NodeId before() const { return engine_.pair.input_of(target()); }

  std::mt19937 generator_;
  const EngineProgram& engine_;
  std::size_t step_;
  Index pairs_;
  PairCovariances nngp_, ntk_;
  std::vector<double> store_;
};

}  // namespace widelimit::testing
