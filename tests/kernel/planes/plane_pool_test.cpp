// Poolings of planes against sums over the windows of every pair of positions.
#include "kernel/planes/plane_pool.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel/planes/pair_stores.hpp"
#include "kernel/planes/plane_numbers.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// The pooling of a network, and covariances of some pairs before it.
class PoolCheck {
 public:
  PoolCheck(const EngineProgram& engine, Index pairs)
      : engine_{engine},
        step_{pool_step(engine.program)},
        pool_{engine.plane_step(step_).target},
        pairs_{pairs},
        nngp_(in_front(geometry().left_sizes), in_front(geometry().right_sizes), pairs, generator_),
        ntk_(in_front(geometry().left_sizes), in_front(geometry().right_sizes), pairs, generator_),
        store_(static_cast<std::size_t>(pairs * engine.pair.stores.size), 7.0),
        row_sums_(static_cast<std::size_t>(pool_row_sums(engine.pair, pool_, pairs)), 7.0) {}

  /// Adds all planes, `at_once` pairs in a stack, and compares what comes out.
  void check(Index at_once) {
    const PairStores<double> stores(engine_.pair, store_.data());
    PlanePool<double> pool(engine_.pair, pool_, stores.at(pool_, 0), row_sums_.data());
    // Twice: nothing is left of the tile before.
    for (int tile = 0; tile < 2; ++tile) {
      pool.begin_tile(pairs_);
      add_planes(pool, at_once);
    }
    for (Index pair = 0; pair < pairs_; ++pair) {
      const Plane<double> pooled = stores.at(pool_, pair);
      check_kernel(nngp_, pair, pooled.nngp);
      check_kernel(ntk_, pair, pooled.ntk);
    }
  }

 private:
  [[nodiscard]] const PairGeometry& geometry() const { return engine_.pair.geometry; }
  [[nodiscard]] Index3 in_front(const std::vector<Index3>& sizes) const {
    return sizes[engine_.pair.input_of(pool_)];
  }

  static std::size_t pool_step(const Program& program) {
    for (std::size_t s = 0; s < program.steps.size(); ++s)
      if (const auto* plane = std::get_if<PlaneStep>(&program.steps[s]))
        if (std::holds_alternative<PoolNode>(program.graph.nodes[plane->target].operation)) return s;
    FAIL("no pooling");
    return 0;
  }

  void add_planes(PlanePool<double>& pool, Index at_once) {
    std::vector<double> scratch(static_cast<std::size_t>(engine_.pair.planes.capacity));
    for_each_root_plane(
        engine_, step_,
        [&](const PlacedPlane& plane) {
          pool.place(plane.axis, plane.layout);
          for (Index pair = 0; pair < pairs_; pair += at_once) {
            const Index count = std::min(at_once, pairs_ - pair);
            StackOfPlanes nngp(plane, count), ntk(plane, count);
            nngp.fill(plane, nngp_, pair, count);
            ntk.fill(plane, ntk_, pair, count);
            pool.add(pair, count, {nngp.planes(), ntk.planes()});
          }
        },
        [&] { pool.end_group(scratch.data(), static_cast<Index>(scratch.size()) - row_padding); });
  }

  /// The positions of a window that its input has.
  static std::vector<Index3> window_at(const Window3& window, const Index3& output, const Index3& input) {
    const Index3 front = window.front(input);
    std::vector<Index3> positions;
    for_each_row(window.size, [&](Index i, Index j) {
      for (Index k = 0; k < window.size[2]; ++k) {
        const Index3 place{window.stride[0] * output[0] + i - front[0],
                           window.stride[1] * output[1] + j - front[1],
                           window.stride[2] * output[2] + k - front[2]};
        bool inside = true;
        for (std::size_t axis = 0; axis < 3; ++axis)
          inside = inside && place[axis] >= 0 && place[axis] < input[axis];
        if (inside) positions.push_back(place);
      }
    });
    return positions;
  }

  void check_kernel(const PairCovariances& covariances, Index pair, const double* pooled) const {
    const auto& node = std::get<PoolNode>(engine_.pair.node(pool_).operation);
    const Window3 window(node.window);
    const auto entries = static_cast<double>(product(window.size));
    const double weight = node.kind == PoolKind::sum ? 1 : 1 / (entries * entries);
    const StoreLayout& layout = engine_.pair.stores.layouts[pool_];
    const Index3 &left = geometry().left_sizes[pool_], &right = geometry().right_sizes[pool_];
    geometry().demanded[pool_].for_each([&](const Index3& offset) {
      const Box box(left, right, offset);
      if (box.empty()) return;
      for_each_row(box.extent, [&](Index x, Index y) {
        for (Index z = 0; z < box.extent[2]; ++z) {
          const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
          const Index3 b{a[0] + offset[0], a[1] + offset[1], a[2] + offset[2]};
          double sum = 0;
          for (const Index3& i : window_at(window, a, in_front(geometry().left_sizes)))
            for (const Index3& j : window_at(window, b, in_front(geometry().right_sizes)))
              sum += covariances.at(pair, i, j);
          CHECK(pooled[layout.entry(a, b)] == doctest::Approx(weight * sum).epsilon(1e-12).scale(1));
        }
      });
    });
  }

  std::mt19937 generator_{11};
  const EngineProgram& engine_;
  std::size_t step_;
  NodeId pool_;
  Index pairs_;
  PairCovariances nngp_, ntk_;
  std::vector<double> store_, row_sums_;
};

std::string pooled_network(const std::string& convolution, const std::string& pool,
                           const std::string& readout) {
  return R"([{"layer": "conv", )" + convolution + R"(}, {"layer": "relu"}, {"layer": )" + pool +
         R"(}, {"layer": "dense"}, {"layer": "relu"}, {"layer": ")" + readout + R"("}, {"layer": "dense"}])";
}

void check_pool(const std::string& network, const Shape& left, const Shape& right) {
  CAPTURE(network);
  const EngineProgram engine(network, left, right, 2);
  for (const Index at_once : {1, 2, 5}) PoolCheck(engine, 5).check(at_once);
}

}  // namespace

TEST_CASE("poolings of images: all offsets, and those on the diagonal only") {
  for (const char* pool : {R"("average_pool", "window": [2, 2], "strides": [2, 2])",
                           R"("sum_pool", "window": [3, 2], "strides": [1, 2], "padding": "same")",
                           R"("average_pool", "window": [3, 3], "strides": [3, 1], "padding": "valid")"})
    for (const char* readout : {"global_average_pool", "flatten"})
      check_pool(pooled_network(R"("filter": [3, 3])", pool, readout), {6, 8}, {6, 8});
}

TEST_CASE("poolings behind joined complementary offsets, and behind offsets that stand alone") {
  const char* const pool = R"("average_pool", "window": [2, 2], "strides": [2, 2])";
  const std::string joined = pooled_network(R"("filter": [3, 3])", pool, "global_average_pool"),
                    alone = pooled_network(R"("filter": [3, 3], "padding": "valid")", pool,
                                           "global_average_pool");
  REQUIRE(EngineProgram(joined, {8, 6}, 2).pair.geometry.runs.front().complements);
  REQUIRE(!EngineProgram(alone, {8, 6}, 2).pair.geometry.runs.front().complements);
  check_pool(joined, {8, 6}, {8, 6});
  check_pool(alone, {8, 6}, {8, 6});
}

TEST_CASE("poolings of sequences of equal and of different length, and of volumes") {
  const std::string pooled = pooled_network(
      R"("filter": [3])", R"("average_pool", "window": [3], "strides": [2], "padding": "same")",
      "global_average_pool");
  check_pool(pooled, {11}, {11});
  check_pool(pooled, {12}, {7});
  check_pool(
      pooled_network(R"("filter": [3, 1, 2])", R"("sum_pool", "window": [2, 1, 2], "strides": [1, 1, 2])",
                     "global_average_pool"),
      {3, 2, 4}, {3, 2, 4});
}
