// The offsets that layers demand of their inputs, against loops over all pairs of positions that they read.
#include "kernel/plan/demand.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>

#include "kernel/backends/cpu/planes/engine_program.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

/// A window along a sequence.
struct Axis {
  Index size;
  Index stride;
  std::string padding;

  /// What stands before the input; by the usual definition of "same".
  [[nodiscard]] Index front(Index input) const {
    if (padding == "valid") return 0;
    const Index missing = (outputs(input) - 1) * stride + size - input;
    return missing > 0 ? missing / 2 : 0;
  }
  [[nodiscard]] Index outputs(Index input) const {
    return padding == "valid" ? (input - size) / stride + 1 : (input + stride - 1) / stride;
  }
};

/// Where a window reads tap `tap` of an input; outside of it, nothing.
std::optional<Index> position(const Axis& axis, Index output, Index tap, Index input) {
  const Index place = axis.stride * output - axis.front(input) + tap;
  if (axis.padding == "circular") return (place % input + input) % input;
  if (place < 0 || place >= input) return {};
  return place;
}

/// The offsets between what the windows of two positions of these offsets read: tap by tap, or every tap
/// with every other.
std::set<Index> read_offsets(const Axis& axis, Index left, Index right, const std::vector<Index>& wanted,
                             bool taps_meet) {
  std::set<Index> offsets;
  for (const Index offset : wanted)
    for (Index a = 0; a < axis.outputs(left); ++a) {
      const Index b = a + offset;
      if (b < 0 || b >= axis.outputs(right)) continue;
      for (Index i = 0; i < axis.size; ++i)
        for (Index j = 0; j < axis.size; ++j) {
          if (!taps_meet && i != j) continue;
          const auto in_left = position(axis, a, i, left), in_right = position(axis, b, j, right);
          if (in_left && in_right) offsets.insert(*in_right - *in_left);
        }
    }
  return offsets;
}

/// The first node of a kind.
template <typename Kind>
NodeId find(const Graph& graph) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (std::holds_alternative<Kind>(graph.nodes[id].operation)) return id;
  FAIL("no such node");
  return 0;
}

template <typename Kind>
void check_demand(const std::string& layer, const Axis& axis, Index left, Index right) {
  CAPTURE(layer);
  CAPTURE(left);
  CAPTURE(right);
  const EngineProgram engine("[" + layer + R"(, {"layer": "dense"}, {"layer": "relu"},
                                 {"layer": "global_average_pool"}, {"layer": "dense"}])",
                             {left}, {right}, 2);
  const Graph& graph = engine.program.graph;
  const NodeId id = find<Kind>(graph);
  const Index outputs_left = axis.outputs(left), outputs_right = axis.outputs(right);
  REQUIRE(engine.pair.geometry.shapes.left[id] == Shape{outputs_left});
  const Offsets all = Offsets::all({1, 1, outputs_left}, {1, 1, outputs_right});
  Offsets every_second = all;
  std::erase_if(every_second.axis[2], [](Index offset) { return offset % 2 != 0; });
  for (const Offsets& wanted : {all, every_second, Offsets::zero()}) {
    const Offsets demanded = input_offsets(graph, id, 0, wanted, engine.pair.geometry.shapes);
    const auto read = read_offsets(axis, left, right, wanted.axis[2], std::is_same_v<Kind, PoolNode>);
    // Nothing is missing, ...
    for (const Index offset : read) CHECK(demanded.contains({0, 0, offset}));
    // ... and what is too many comes from windows that reach beyond their input only.
    for (const Index offset : demanded.axis[2]) {
      CHECK(offset > -left);
      CHECK(offset < right);
      if (axis.padding == "valid") CHECK(read.contains(offset));
    }
  }
}

const std::vector<std::pair<Index, Index>> axis_lengths{{9, 9}, {12, 7}, {8, 5}};

}  // namespace

TEST_CASE("convolutions demand what their taps read, whatever stride, padding and lengths") {
  for (const char* padding : {"same", "valid", "circular"})
    for (const Index size : {1, 2, 3, 5})
      for (const Index stride : {1, 2, 3})
        for (const auto& sizes : axis_lengths)
          check_demand<AffineNode>(
              fmt::format(R"({{"layer": "conv", "filter": [{}], "strides": [{}], "padding": "{}"}})", size,
                          stride, padding),
              {size, stride, padding}, sizes.first, sizes.second);
}

TEST_CASE("poolings demand every position of a window with every other") {
  for (const char* padding : {"same", "valid"})
    for (const Index size : {1, 2, 3})
      for (const Index stride : {1, 2, 3})
        for (const auto& sizes : axis_lengths)
          check_demand<PoolNode>(fmt::format(R"({{"layer": "conv", "filter": [3]}}, {{"layer": "relu"}},
                              {{"layer": "average_pool", "window": [{}], "strides": [{}], "padding": "{}"}})",
                                             size, stride, padding),
                                 {size, stride, padding}, sizes.first, sizes.second);
}

TEST_CASE("sets of offsets: their union is the smallest product that holds both") {
  Offsets first{{{{0}, {-1, 0}, {2}}}};
  const Offsets second{{{{0}, {0, 3}, {-2, 2}}}};
  first.unite(second);
  CHECK(first == Offsets{{{{0}, {-1, 0, 3}, {-2, 2}}}});
  CHECK(first.count() == 6);
  CHECK(first.contains({0, 3, -2}));
  CHECK(!first.contains({0, 1, 2}));
  Offsets none;
  none.unite(second);
  CHECK(none == second);
  CHECK(Offsets::zero().is_zero_only());
  CHECK(Offsets::all({1, 2, 3}, {1, 4, 2}).count() == 5 * 4);
  CHECK_THROWS_AS(Offsets::all({1, 4000, 4000}, {1, 4000, 4000}), TooManyOffsets);
}
