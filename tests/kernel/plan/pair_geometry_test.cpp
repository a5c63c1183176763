// The offsets of the instructions of chains, and the order in which they are executed.
#include "kernel/plan/pair_geometry.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "kernel/backends/cpu/planes/engine_program.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// Calls body(step, run) for every plane step.
template <typename Body>
void for_each_run(const EngineProgram& engine, const Body& body) {
  for (std::size_t s = 0; s < engine.program.steps.size(); ++s)
    if (const auto* step = std::get_if<PlaneStep>(&engine.program.steps[s]))
      body(*step, engine.pair.geometry.chains[s]);
}

/// The offsets along an axis, one after the other.
std::vector<Index> in_order(const std::vector<AxisOffsets>& offsets) {
  std::vector<Index> result;
  for (const AxisOffsets& some : offsets)
    result.insert(result.end(), some.offset.begin(), some.offset.begin() + some.count);
  return result;
}

/// Every demanded offset of the root is there once; complementary ones are neighbours.
void check_offsets(const EngineProgram& engine) {
  const PairGeometry& geometry = engine.pair.geometry;
  for_each_run(engine, [&](const PlaneStep& step, const ChainGeometry& chain) {
    for (std::size_t k = 0; k < 3; ++k) {
      const std::vector<Index> order = in_order(chain.offsets[k]);
      std::vector<Index> sorted = order;
      std::sort(sorted.begin(), sorted.end());
      CHECK(sorted == geometry.demanded[step.chain.root].axis[k]);
      for (const AxisOffsets& some : chain.offsets[k])
        if (some.count == 2)
          CHECK(some.offset[0] - some.offset[1] == geometry.left_sizes[step.chain.root][k]);
    }
  });
}

std::string layers_text(const std::string& first, const std::string& readout = "global_average_pool") {
  return R"([{"layer": "conv", )" + first + R"(}, {"layer": "relu"}, {"layer": "conv", "filter": [3, 3]},
             {"layer": "relu"}, {"layer": ")" +
         readout + R"("}, {"layer": "dense"}])";
}

bool joins(const std::string& network, const Shape& left, const Shape& right) {
  return EngineProgram(network, left, right, 2).pair.geometry.chains.back().complements;
}

}  // namespace

TEST_CASE("chains have every demanded offset once, complementary ones side by side, joined or not") {
  const std::string same = layers_text(R"("filter": [3, 3])"),
                    valid = layers_text(R"("filter": [2, 2], "padding": "valid")");
  const EngineProgram joined(same, {6, 7}, 2), alone(valid, {7, 8}, 2),
      few(layers_text(R"("filter": [3, 3])", "flatten"), {6, 7}, 2);
  for (const EngineProgram* engine : {&joined, &alone, &few}) check_offsets(*engine);
  // Poolings of an input with itself add up in this order.
  const ChainGeometry &first = joined.pair.geometry.chains.back(),
                      &second = alone.pair.geometry.chains.back();
  REQUIRE(first.complements);
  REQUIRE(!second.complements);
  for (std::size_t k = 1; k < 3; ++k) {
    CHECK(in_order(first.offsets[k]) == in_order(second.offsets[k]));
    CHECK(first.offsets[k].size() < second.offsets[k].size());
  }
}

TEST_CASE("complementary offsets are joined on images of one size, after strides of 2 at most") {
  const std::string same = layers_text(R"("filter": [3, 3])");
  CHECK(joins(same, {6, 7}, {6, 7}));
  CHECK(!joins(same, {6, 7}, {6, 5}));
  CHECK(!joins(layers_text(R"("filter": [2, 2], "padding": "valid")"), {6, 7}, {6, 7}));
  CHECK(!joins(layers_text(R"("filter": [3, 3], "padding": "circular")"), {6, 7}, {6, 7}));
  CHECK(joins(layers_text(R"("filter": [3, 3], "strides": [2, 2])"), {8, 6}, {8, 6}));
  CHECK(!joins(layers_text(R"("filter": [3, 3], "strides": [2, 2])"), {7, 6}, {7, 6}));
  CHECK(!joins(layers_text(R"("filter": [3, 3], "strides": [3, 3])"), {9, 9}, {9, 9}));
  CHECK(!joins(R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "global_average_pool"},
                   {"layer": "dense"}])",
               {8}, {8}));
}

TEST_CASE("the gaps of joined planes are the guards, times the stride; others have none") {
  const EngineProgram strided(layers_text(R"("filter": [3, 5], "strides": [2, 2])"), {8, 6}, 2),
      alone(layers_text(R"("filter": [3, 5], "strides": [2, 2])"), {7, 6}, 2);
  const ChainGeometry& chain = strided.pair.geometry.chains.back();
  REQUIRE(chain.complements);
  CHECK(chain.guard == Index3{0, 1, 2});
  CHECK(chain.gap(chain.maps.size() - 1, 2) == 2);
  CHECK(chain.maps.front().stride == Index3{1, 2, 2});
  CHECK(chain.gap(0, 1) == 2);
  CHECK(chain.gap(0, 2) == 4);
  CHECK(alone.pair.geometry.chains.back().gap(0, 2) == 0);
}

// The first window of a sequence of 9 and stride 2 begins one position before it, as that of 7; that of
// 8 begins with it.
TEST_CASE("offsets of instructions follow from the root's through strides and places of windows") {
  const std::string network = R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
      {"layer": "conv", "filter": [3], "strides": [2]}, {"layer": "relu"}, {"layer": "global_average_pool"},
      {"layer": "dense"}])";
  const auto first_map = [&](Index left, Index right) {
    const EngineProgram engine(network, {left}, {right}, 2);
    const ChainGeometry& chain = engine.pair.geometry.chains.back();
    CHECK(chain.maps.back() == OffsetMap{});
    return chain.maps.front();
  };
  CHECK(first_map(9, 9) == OffsetMap{{1, 1, 2}, {0, 0, 0}});
  CHECK(first_map(9, 7) == OffsetMap{{1, 1, 2}, {0, 0, 0}});
  CHECK(first_map(9, 8) == OffsetMap{{1, 1, 2}, {0, 0, 1}});
  CHECK(first_map(8, 7) == OffsetMap{{1, 1, 2}, {0, 0, -1}});
}

TEST_CASE("entries that are demanded of a node, counted one by one") {
  const EngineProgram engine(layers_text(R"("filter": [2, 2], "padding": "valid")"), {7, 6}, {5, 6}, 2);
  const PairGeometry& geometry = engine.pair.geometry;
  for (NodeId id = 0; id < engine.program.graph.nodes.size(); ++id) {
    if (!engine.program.has_positions[id]) continue;
    double entries = 0;
    geometry.demanded[id].for_each([&](const Index3& offset) {
      entries += static_cast<double>(Box(geometry.left_sizes[id], geometry.right_sizes[id], offset).size());
    });
    CHECK(geometry.entries(id) == entries);
  }
}
