// The memory after the positions: every array is where no other is, and is filled from the inputs' states.
#include "kernel/backends/cpu/pair_rows/pair_row_memory.hpp"

#include <doctest/doctest.h>

#include <memory>

#include "kernel/backends/cpu/pair_rows/pair_row_program.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

PairRowProgram remembered() {
  return PairRowProgram({{InputNode{}, {}},
                         {dense_node(1.5, 0), {0}},
                         {RowNode{std::make_shared<LoopRowStage>()}, {1}},
                         {dense_node(0.5, 0), {2}},
                         {RowNode{std::make_shared<LoopRowStage>()}, {3}},
                         {PairNode{std::make_shared<LoopPairStage>()}, {4}},
                         {SumNode{{1, 1}}, {5, 1}}});
}

constexpr Index row_capacity = 48;

/// Every array of a memory, `row_capacity` numbers each.
std::vector<double*> arrays_of(PairRowMemory<double>& memory, const Program& program, std::size_t sources) {
  std::vector<double*> arrays;
  const auto add = [&](const Plane<double>& plane) {
    arrays.push_back(plane.nngp);
    if (plane.ntk != nullptr) arrays.push_back(plane.ntk);
  };
  for (std::size_t slot = 0; slot < program.pair_rows.slot_count; ++slot) add(memory.slot(slot));
  for (std::size_t source = 0; source < sources; ++source) add(memory.source(source));
  for (std::size_t i = 0; i < program.pair_rows.instructions.size(); ++i)
    for (const auto* side : {&memory.arrays(i).left, &memory.arrays(i).right})
      arrays.insert(arrays.end(), side->begin(), side->end());
  return arrays;
}

}  // namespace

TEST_CASE("point memory: no array reaches into another") {
  const PairRowProgram points = remembered();
  for (const bool with_ntk : {false, true}) {
    PairRowMemory<double> memory(points.program, points.state, with_ntk, row_capacity, 2);
    CHECK(memory.with_ntk() == with_ntk);
    CHECK((memory.slot(0).ntk == nullptr) == !with_ntk);
    const std::vector<double*> arrays = arrays_of(memory, points.program, 2);
    // Slots and sources of one or two kernels; an auxiliary number a side of both row stages.
    CHECK(arrays.size() == (points.program.pair_rows.slot_count + 2) * (with_ntk ? 2 : 1) + 4);
    for (std::size_t a = 0; a < arrays.size(); ++a)
      std::fill_n(arrays[a], row_capacity, static_cast<double>(a));
    std::fill_n(memory.scratch(), 3, -1.0);
    for (std::size_t a = 0; a < arrays.size(); ++a)
      CHECK(std::count(arrays[a], arrays[a] + row_capacity, static_cast<double>(a)) == row_capacity);
  }
}

TEST_CASE("point memory: only row stages have arrays, of their own node") {
  const PairRowProgram points = remembered();
  PairRowMemory<double> memory(points.program, points.state, false, row_capacity, 1);
  for (std::size_t i = 0; i < points.program.pair_rows.instructions.size(); ++i) {
    const NodeId node = points.program.pair_rows.instructions[i].node;
    const bool is_row = std::holds_alternative<RowNode>(points.program.graph.nodes[node].operation);
    CHECK(memory.arrays(i).node == node);
    CHECK(memory.arrays(i).left.size() == (is_row ? 1 : 0));
    CHECK(memory.arrays(i).right.size() == (is_row ? 1 : 0));
  }
}

TEST_CASE("point memory: arrays of rows hold their inputs' numbers, the left one's all along the row") {
  const PairRowProgram points = remembered();
  const PairRowStates states(points, {1, 2, 3, 4, 5});
  PairRowMemory<double> memory(points.program, points.state, false, row_capacity, 1);
  const std::vector<const InputState<double>*> right = states.some(2, 5);
  const std::vector<PairRow<double>> lefts{{&states[0], -1, {}}, {&states[1], -1, {}}};
  const PairRows<double> rows{lefts, right};
  REQUIRE(rows.step() == row_padding);
  for (std::size_t i = 0; i < points.program.pair_rows.instructions.size(); ++i) {
    const PairRowArrays<double>& arrays = memory.arrays(i);
    arrays.gather_right(rows, 2);
    arrays.gather_left(rows);
    for (std::size_t row = 0; row < lefts.size(); ++row)
      for (std::size_t column = 0; column < right.size() && !arrays.left.empty(); ++column) {
        const auto place = row * static_cast<std::size_t>(rows.step()) + column;
        CHECK(arrays.left[0][place] == states[row].array(arrays.node, 0)[0]);
        CHECK(arrays.right[0][place] == states[2 + column].array(arrays.node, 0)[0]);
      }
  }
}
