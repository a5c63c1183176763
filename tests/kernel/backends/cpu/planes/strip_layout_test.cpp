// Where the rows of planes stand in strips, against strips that are written out row by row.
#include "kernel/backends/cpu/planes/strip_layout.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/cpu/planes/strips.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

constexpr Index guard = -1;

/// The input's row that stands at every row of its strip, or a guard. `gap`: where left guards stand.
std::vector<Index> strip_rows(const StripLayout& layout, Index gap) {
  std::vector<Index> rows;
  for (int repeat = 0; repeat < (layout.repeats ? 2 : 1); ++repeat) {
    for (Index row = 0; row < layout.slabs * layout.slab_rows; ++row) {
      if (!layout.repeats && row == gap)
        rows.insert(rows.end(), static_cast<std::size_t>(layout.gap_rows), guard);
      rows.push_back(row);
    }
    const bool gap_after = layout.repeats ? repeat == 0 : gap == layout.slabs * layout.slab_rows;
    if (gap_after) rows.insert(rows.end(), static_cast<std::size_t>(layout.gap_rows), guard);
  }
  return rows;
}

/// The rows that a plane of one slab wants from an input of a side.
std::vector<Index> plane_rows(const PlacedPlane& plane, Side side) {
  std::vector<Index> rows(static_cast<std::size_t>(plane.layout.extent[1]), guard);
  const AxisPieces& axis = plane.axis[1];
  for (std::size_t piece = 0; piece < static_cast<std::size_t>(axis.count); ++piece)
    for (Index j = 0; j < axis.extent[piece]; ++j)
      rows[static_cast<std::size_t>(axis.start[piece] + j)] =
          axis.origin[piece] + j + (side == Side::right ? axis.offset[piece] : 0);
  return rows;
}

void check_planes(const EngineProgram& engine, std::size_t step, std::size_t instruction) {
  const PairGeometry& geometry = engine.pair.geometry;
  const ChainGeometry& chain = geometry.chains.at(step);
  const auto& instructions = engine.plane_step(step).chain.instructions;
  const Index3& sizes = geometry.left_sizes[instructions[instruction].node];
  for (const AxisOffsets& y : chain.offsets[1]) {
    PlacedPlane plane;
    plane.place(chain, instruction, {chain.offsets[0][0], y, chain.offsets[2][0]}, sizes, sizes);
    for (const Side side : {Side::left, Side::right}) {
      const StripLayout layout(chain, instruction, sizes, side);
      const std::vector<Index> strip = strip_rows(layout, plane.axis[1].first_gap());
      REQUIRE(static_cast<Index>(strip.size()) == layout.rows());
      const Index first = layout.row(first_position(plane, side));
      const std::vector<Index> wanted = plane_rows(plane, side);
      for (std::size_t row = 0; row < wanted.size(); ++row) {
        const std::size_t place = static_cast<std::size_t>(first) + row;
        REQUIRE(place < strip.size());
        CHECK(strip[place] == wanted[row]);
      }
    }
  }
}

}  // namespace

TEST_CASE("planes are neighbouring rows of strips: one piece, or two with guards between them") {
  const EngineProgram joined(R"([
      {"layer": "conv", "filter": [5, 3]}, {"layer": "relu"}, {"layer": "conv", "filter": [3, 3], "strides": [2, 2]},
      {"layer": "relu"}, {"layer": "global_average_pool"}, {"layer": "dense"}])",
                             {10, 6}, 2),
      alone(R"([{"layer": "conv", "filter": [3, 3], "padding": "valid"}, {"layer": "relu"},
                {"layer": "global_average_pool"}, {"layer": "dense"}])",
            {7, 6}, 2),
      few(R"([{"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
              {"layer": "average_pool", "window": [2, 2]}, {"layer": "flatten"}, {"layer": "dense"}])",
          {6, 8}, 2);
  REQUIRE(joined.pair.geometry.chains.front().complements);
  REQUIRE(!alone.pair.geometry.chains.front().complements);
  // Offsets of which none has its complement: planes begin behind left guards.
  REQUIRE(few.pair.geometry.chains.front().complements);
  REQUIRE(few.pair.geometry.chains.front().offsets[1].back().offset[0] == -1);
  for (const EngineProgram* engine : {&joined, &alone, &few})
    for (std::size_t i = 0; i < engine->pair.geometry.chains.front().maps.size(); ++i)
      check_planes(*engine, 0, i);
  const ChainGeometry& chain = joined.pair.geometry.chains.front();
  CHECK(StripLayout(chain, 0, {1, 10, 6}, Side::left).gap_rows == 4);
  CHECK(StripLayout(chain, 0, {1, 10, 6}, Side::left).moves_gap());
  CHECK(StripLayout(chain, 0, {1, 10, 6}, Side::right).rows() == 24);
}
