// The workspace of a thread: what its description promises.
#include "kernel/backends/cpu/planes/workspace.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "kernel/backends/cpu/planes/engine_program.hpp"

using namespace widelimit;
using namespace widelimit::testing;

namespace {

constexpr std::array<WorkspacePart, WorkspaceLayout::part_count> all_parts{
    WorkspacePart::slots,    WorkspacePart::packs,    WorkspacePart::strips,  WorkspacePart::stores,
    WorkspacePart::matrices, WorkspacePart::products, WorkspacePart::row_sums};

const char* const carved_network = R"([
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"},
    {"layer": "average_pool", "window": [2, 2], "strides": [2, 2]},
    {"layer": "conv", "filter": [3, 3]}, {"layer": "relu"}, {"layer": "global_average_pool"},
    {"layer": "dense"}])";

}  // namespace

TEST_CASE("the parts of a workspace follow each other and are as large as a tile needs them") {
  const EngineProgram engine(carved_network, {8, 6}, 3);
  constexpr Index side = 5;
  const WorkspaceLayout layout(engine.pair, engine.state, {side, side});
  Index end = 0;
  for (const WorkspacePart part : all_parts) {
    CHECK(layout.begin(part) == end);
    end += layout.of(part);
  }
  CHECK(layout.total() == end);
  const PlaneSizes& planes = engine.pair.planes;
  CHECK(layout.of(WorkspacePart::slots) >= static_cast<Index>(layout.slot_count + 2) * 2 * planes.slot());
  CHECK(layout.of(WorkspacePart::stores) >= side * side * engine.pair.stores.size);
  CHECK(layout.of(WorkspacePart::products) >= side * side * planes.slot());
  CHECK(layout.of(WorkspacePart::row_sums) > 0);
  // Two row stages of the ReLU's arrays, or the inputs and one of them, whatever run has more.
  Index most_arrays = 0;
  for (const Step& step : engine.program.steps) {
    Index arrays = 0;
    for (const Instruction& instruction : std::get<PlaneStep>(step).chain.instructions)
      if (reads_arrays(engine.program, instruction)) arrays += engine.state.arrays[instruction.node];
    most_arrays = std::max(most_arrays, arrays);
  }
  CHECK(layout.of(WorkspacePart::packs) >= 3 * side * most_arrays * planes.capacity);
  CHECK(layout.of(WorkspacePart::strips) >= 2 * side * most_arrays * planes.strip);
  // A single left input takes room for itself and not for as many as there are right ones.
  const WorkspaceLayout narrow(engine.pair, engine.state, {1, side});
  CHECK(narrow.of(WorkspacePart::stores) >= side * engine.pair.stores.size);
  CHECK(narrow.of(WorkspacePart::packs) >= (1 + 2 * side) * most_arrays * planes.capacity);
  CHECK(narrow.total() < layout.total());
}

TEST_CASE("slots are apart, and zero whenever the workspace is carved") {
  const EngineProgram small(carved_network, {4, 4}, 3), large(carved_network, {8, 6}, 3);
  Workspace<double> workspace;
  for (const EngineProgram* engine : {&small, &large, &small}) {
    const PlaneSizes& planes = engine->pair.planes;
    const WorkspaceLayout layout(engine->pair, engine->state, {3, 3});
    workspace.carve(layout, planes, true);
    for (const WorkspacePart part : {WorkspacePart::slots, WorkspacePart::products}) {
      const double* begin = workspace.part(part);
      CHECK(std::all_of(begin, begin + layout.of(part), [](double number) { return number == 0; }));
    }
    // Margin, plane, margin, plane: the ntk after the nngp, the scratch after the slots.
    double* next = workspace.part(WorkspacePart::slots);
    for (std::size_t number = 0; number < layout.slot_count + 2; ++number) {
      const Plane<double> slot =
          number < layout.slot_count ? workspace.slot(number) : workspace.scratch(number - layout.slot_count);
      CHECK(slot.nngp == next + planes.front);
      CHECK(slot.ntk == slot.nngp + planes.slot());
      next += 2 * planes.slot();
    }
    CHECK(next <= workspace.part(WorkspacePart::packs));
    std::fill_n(workspace.part(WorkspacePart::slots), layout.total(), 7.0);
  }
  workspace.carve(WorkspaceLayout(small.pair, small.state, {1, 1}), small.pair.planes, false);
  CHECK(workspace.slot(0).ntk == nullptr);
  CHECK(workspace.slot(1).nngp == workspace.slot(0).nngp + small.pair.planes.slot());
}
