// Schedules of random networks: what every schedule must keep to, replayed step by step.
#include "kernel/plan/program.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/plan/pair_geometry.hpp"
#include "kernel/random_networks.hpp"

namespace widelimit::testing::program_test {
namespace {

Program program_of(const Network& network, const std::vector<Shape>& shapes) {
  Graph graph = lower_with_readouts(network, shapes.front(), Replicate{});
  std::vector<std::vector<Shape>> of_nodes;
  for (const Shape& shape : shapes) of_nodes.push_back(node_shapes(graph, shape));
  return make_program(std::move(graph), of_nodes, {});
}

Program program_of(const std::string& layers, const std::vector<Shape>& shapes) {
  return program_of(parse_network(R"({"widelimit": 1, "layers": )" + layers + "}"), shapes);
}

/// What a step fills: a node that is kept, or the readout or gathering after a chain.
NodeId target_of_step(const Step& step) {
  if (const auto* plane = std::get_if<PlaneStep>(&step)) return plane->target;
  if (const auto* pair = std::get_if<PairStep>(&step)) return pair->node;
  return std::get<InputStep>(step).node;
}

/// True if an instruction for a node may write where it reads.
bool may_work_in_place(const Node& node) {
  if (const auto* sum = std::get_if<SumNode>(&node.operation)) return sum->factors.size() == 2;
  const auto* affine = std::get_if<AffineNode>(&node.operation);
  return std::holds_alternative<RowNode>(node.operation) ||
         (affine != nullptr && affine_kind(*affine) == AffineKind::single_position);
}

/// Replays where the values of a chain lie: each is still there when it is read, and the root at the end.
void check_slots(const Program& program, const Chain& chain) {
  std::vector<std::optional<std::size_t>> holds(chain.slot_count);
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const Instruction& instruction = chain.instructions[i];
    REQUIRE(instruction.slot < chain.slot_count);
    for (const std::size_t input : instruction.inputs) {
      REQUIRE(input < i);
      CHECK(holds[chain.instructions[input].slot] == input);
      if (chain.instructions[input].slot == instruction.slot)
        CHECK(may_work_in_place(program.graph.nodes[instruction.node]));
    }
    holds[instruction.slot] = i;
  }
  REQUIRE_FALSE(chain.instructions.empty());
  CHECK(chain.instructions.back().node == chain.root);
  CHECK(holds[chain.instructions.back().slot] == chain.instructions.size() - 1);
}

/// Instructions that do not load read exactly their node's inputs, but for readers of whole kept nodes; every node of a
/// run is evaluated once.
void check_instructions(const Program& program, const Chain& chain) {
  std::vector<int> evaluated(program.graph.nodes.size(), 0);
  for (const Instruction& instruction : chain.instructions) {
    const Node& node = program.graph.nodes[instruction.node];
    if (instruction.loads) {
      CHECK(instruction.inputs.empty());
      continue;
    }
    CHECK(++evaluated[instruction.node] == 1);
    if (instruction.inputs.empty()) {
      for (const NodeId input : node.inputs) CHECK(program.kept[input]);
      continue;
    }
    REQUIRE(instruction.inputs.size() == node.inputs.size());
    for (std::size_t k = 0; k < node.inputs.size(); ++k)
      CHECK(chain.instructions[instruction.inputs[k]].node == node.inputs[k]);
  }
}

/// Whatever is loaded has been filled by an earlier step, and every kept node is filled once.
void check_order(const Program& program) {
  std::vector<bool> filled(program.graph.nodes.size(), false);
  const auto check_loads = [&](const Chain& chain) {
    for (const Instruction& instruction : chain.instructions) {
      if (instruction.loads) CHECK(filled[instruction.node]);
      if (!instruction.loads && instruction.inputs.empty())
        for (const NodeId input : program.graph.nodes[instruction.node].inputs) CHECK(filled[input]);
    }
  };
  for (const Step& step : program.steps) {
    if (const auto* plane = std::get_if<PlaneStep>(&step)) check_loads(plane->chain);
    if (const auto* pair = std::get_if<PairStep>(&step))
      CHECK(filled[program.graph.nodes[pair->node].inputs[0]]);
    const NodeId target = target_of_step(step);
    CHECK_FALSE(filled[target]);
    filled[target] = true;
  }
  check_loads(program.pair_rows);
  for (NodeId id = 0; id < filled.size(); ++id)
    if (program.kept[id]) CHECK(filled[id]);
}

/// A reader finds at its input's offset what its window asks for: the strides of its offset times its window's.
void check_offsets(const Program& program, const Chain& chain, const std::vector<Index3>& left,
                   const std::vector<Index3>& right) {
  const std::vector<OffsetMap> maps = offset_maps(program, chain, left, right);
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const Node& node = program.graph.nodes[chain.instructions[i].node];
    const auto* affine = std::get_if<AffineNode>(&node.operation);
    for (std::size_t k = 0; k < chain.instructions[i].inputs.size(); ++k) {
      OffsetMap expected = maps[i];
      if (affine != nullptr) {
        const Window3 window(affine->window);
        const NodeId input = node.inputs[k];
        const Index3 of_left = window.front(left[input]), of_right = window.front(right[input]);
        for (std::size_t axis = 0; axis < 3; ++axis) {
          expected.stride[axis] *= window.stride[axis];
          expected.shift[axis] = window.stride[axis] * expected.shift[axis] + of_left[axis] - of_right[axis];
        }
      }
      CHECK(maps[chain.instructions[i].inputs[k]] == expected);
    }
  }
}

void check_program(const Network& network, const std::vector<Shape>& shapes) {
  const Program program = program_of(network, shapes);
  check_order(program);
  check_slots(program, program.pair_rows);
  check_instructions(program, program.pair_rows);
  for (const Step& step : program.steps)
    if (const auto* plane = std::get_if<PlaneStep>(&step)) {
      check_slots(program, plane->chain);
      check_instructions(program, plane->chain);
      for (const Shape& one : shapes)
        for (const Shape& other : shapes) {
          const PairGeometry geometry = make_geometry(program, one, other, Purpose::result, false);
          check_offsets(program, plane->chain, geometry.left_sizes, geometry.right_sizes);
        }
    }
}

TEST_CASE("Program: schedules of random networks for inputs of one shape") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const Shape shape = seed % 3 == 0 ? Shape{7, 6} : seed % 3 == 1 ? Shape{11} : Shape{3, 4, 5};
    check_program(random_network(seed, shape), {shape});
  }
}

TEST_CASE("Program: schedules that serve inputs of several shapes") {
  for (unsigned seed = 100; seed < 140; ++seed) {
    CAPTURE(seed);
    const std::vector<Shape> shapes =
        seed % 2 == 0 ? std::vector<Shape>{{12}, {9}, {7}} : std::vector<Shape>{{7, 8}, {6, 5}};
    check_program(random_network(seed, shapes), shapes);
  }
}

std::size_t count_kept(const Program& program) {
  return static_cast<std::size_t>(std::count(program.kept.begin(), program.kept.end(), true));
}

TEST_CASE("Program: a chain without poolings is one chain, whose two slots are used again and again") {
  const Program program = program_of(
      R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "conv", "filter": [3]}, {"layer": "erf"},
          {"layer": "conv", "filter": [3]}, {"layer": "relu"}, {"layer": "flatten"}])",
      {{9}});
  REQUIRE(program.steps.size() == 1);
  CHECK(count_kept(program) == 0);
  CHECK(std::get<PlaneStep>(program.steps[0]).chain.slot_count <= 2);
}

TEST_CASE("Program: branches that read a node at offsets that differ keep it, and load it at each of them") {
  // The windows begin one position apart between inputs of length 9 and 8: only one of them is cut at its front.
  const std::string branches =
      R"([{"layer": "conv", "filter": [3]}, {"layer": "relu"},
          {"layer": "sum", "branches": [{"layers": [{"layer": "conv", "filter": [3], "strides": [2]}]},
                                        {"layers": [{"layer": "conv", "filter": [1], "strides": [2]}]}]},
          {"layer": "relu"}, {"layer": "global_average_pool"}])";
  const Program alone = program_of(branches, {{9}}), both = program_of(branches, {{9}, {8}});
  CHECK(count_kept(alone) == 0);
  REQUIRE(count_kept(both) == 1);
  const auto& last = std::get<PlaneStep>(both.steps.back()).chain;
  CHECK(std::count_if(last.instructions.begin(), last.instructions.end(),
                      [](const Instruction& instruction) { return instruction.loads; }) == 2);
}

TEST_CASE("Program: poolings and attention end chains, and attention wants a matrix") {
  const Program program = program_of(
      R"([{"layer": "conv", "filter": [3]}, {"layer": "average_pool", "window": [2]}, {"layer": "relu"},
          {"layer": "attention", "scaling": "inverse_width", "weights": "softmax"}, {"layer": "erf"},
          {"layer": "global_average_pool"}])",
      {{8}});
  std::vector<std::size_t> kinds;
  for (const Step& step : program.steps) kinds.push_back(step.index());
  // Planes into the pooling; planes into a matrix; attention; planes into the readout.
  CHECK(kinds == std::vector<std::size_t>{0, 0, 2, 0});
  const NodeId attention = std::get<PairStep>(program.steps[2]).node;
  CHECK(program.as_matrix[attention]);
  CHECK(program.as_matrix[program.graph.nodes[attention].inputs[0]]);
  CHECK_FALSE(program.as_matrix[std::get<PlaneStep>(program.steps[0]).target]);
}

}  // namespace
}  // namespace widelimit::testing::program_test
