// Poolings of planes against sums over the windows of every pair of positions.
#include "kernel/backends/cpu/planes/plane_pool.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel/backends/cpu/planes/plane_feed.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// The pooling of a network, and covariances of some pairs before it.
class PoolCheck {
 public:
  PoolCheck(const EngineProgram& engine, Index pairs)
      : feed_(engine, step_ending_in<PoolNode>(engine.program), pairs, 11),
        row_sums_(static_cast<std::size_t>(pool_row_sums(engine.pair, feed_.target(), pairs)), 7.0) {}

  /// Adds all planes, `at_once` pairs in a stack, and compares what comes out.
  void check(Index at_once) {
    const auto& pair_layout = feed_.engine().pair;
    PlanePool<double> pool(pair_layout, feed_.target(), feed_.result(0), row_sums_.data());
    std::vector<double> scratch(static_cast<std::size_t>(pair_layout.planes.capacity));
    feed_.feed(pool, at_once,
               [&] { pool.end_group(scratch.data(), static_cast<Index>(scratch.size()) - row_padding); });
    feed_.check_results([&](const PairCovariances& covariances, Index pair, const double* pooled) {
      check_kernel(covariances, pair, pooled);
    });
  }

 private:
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
    const auto& node = std::get<PoolNode>(feed_.engine().pair.node(feed_.target()).operation);
    const Window3 window(node.window);
    const auto entries = static_cast<double>(product(window.size));
    const double weight = node.kind == PoolKind::sum ? 1 : 1 / (entries * entries);
    feed_.for_each_demanded([&](const Index3& a, const Index3& b, Index place) {
      double sum = 0;
      for (const Index3& i : window_at(window, a, feed_.left_before()))
        for (const Index3& j : window_at(window, b, feed_.right_before())) sum += covariances.at(pair, i, j);
      CHECK(pooled[place] == doctest::Approx(weight * sum).epsilon(1e-12).scale(1));
    });
  }

  PlaneFeed feed_;
  std::vector<double> row_sums_;
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
  REQUIRE(EngineProgram(joined, {8, 6}, 2).pair.geometry.chains.front().complements);
  REQUIRE(!EngineProgram(alone, {8, 6}, 2).pair.geometry.chains.front().complements);
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
