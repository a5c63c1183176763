#include "kernel/backends/cpu/backward/run/backward_plan.hpp"

#include <algorithm>

#include "kernel/backends/cpu/backward/plan/has_backward_pass.hpp"
#include "kernel/backends/cpu/backward/plan/steep_stages.hpp"
#include "kernel/backends/cpu/planes/stacks.hpp"
#include "kernel/plan/selections.hpp"
#include "kernel/run/make_gram_plan.hpp"

namespace widelimit {
namespace {

/// An upper bound for the length of an instruction's planes, guards included. The plane of offset 0 is the longest
/// one.
Index plane_length(const PairGeometry& geometry, const ChainGeometry& run, const Instruction& instruction) {
  Index length = 1;
  for (std::size_t k = 0; k < 3; ++k)
    length *= std::min(geometry.left_sizes[instruction.node][k], geometry.right_sizes[instruction.node][k]) +
              2 * run.guard[k];
  return length;
}

/// The numbers of all nodes of a pair that are kept as whole matrices: NNGP, NTK and the adjoints of both.
Index kept_numbers(const Program& program, const PairGeometry& geometry) {
  Index numbers = 0;
  for (NodeId id = 0; id < program.kept.size(); ++id)
    if (program.kept[id]) numbers += 4 * product(geometry.left_sizes[id]) * product(geometry.right_sizes[id]);
  return numbers;
}

NamedShapes all_shapes(const BackwardInputs& inputs) {
  NamedShapes shapes = inputs.left;
  shapes.insert(inputs.right.begin(), inputs.right.end());
  return shapes;
}

LoweredNetwork lowered_as_written(const Network& network, const BackwardInputs& inputs) {
  return lower_for(network, all_shapes(inputs), {inputs.masks, inputs.channels}, {}, Readouts::as_written);
}

Index block_side_of(const Program& program, const PairGeometry& geometry) {
  // The kept nodes of all side^2 pairs of a block are in memory at a time, at most 2^19 numbers (4 MiB in double).
  constexpr Index fewest = 3, most = 12, most_kept = Index{1} << 19;
  Index longest = 1;
  for (std::size_t step = 0; step < program.steps.size(); ++step)
    if (const auto* plane = std::get_if<PlaneStep>(&program.steps[step]))
      for (const Instruction& instruction : plane->chain.instructions)
        longest = std::max(longest, plane_length(geometry, geometry.chains[step], instruction));
  Index side = std::clamp(planes_a_stack(longest), fewest, most);
  while (side > 1 && side * side * kept_numbers(program, geometry) > most_kept) --side;
  return side;
}

}  // namespace

std::size_t BackwardPlan::vector_place(NodeId node) const {
  return *std::find_if(sources.begin(), sources.end(), [node](const Source& source) {
            return source.node == node;
          })->vector_place;
}

Graph backward_graph(const Network& network, const BackwardInputs& inputs) {
  LoweredNetwork lowered = lowered_as_written(network, inputs);
  return with_selections(std::move(lowered.graph), lowered.shapes);
}

BackwardPlan make_backward_plan(const Network& network, const BackwardInputs& inputs, bool with_ntk) {
  const auto& [left, right, channels, masks] = inputs;
  LoweredNetwork lowered = lowered_as_written(network, inputs);
  require_backward_pass(lowered.graph);
  const std::set<NodeId> products = matrix_inputs(lowered.graph, lowered.shapes.front(), channels);
  BackwardPlan plan{.program = make_program(std::move(lowered.graph), lowered.shapes, products),
                    .masks = masks,
                    .with_ntk = with_ntk,
                    .channels = channels,
                    .records = {},
                    .selves = {},
                    .pairs = {},
                    .sources = {},
                    .steep = {},
                    .steep_for_self = {}};
  plan.steep = steep_nodes(plan.program.graph, with_ntk);
  plan.steep_for_self = with_ntk ? steep_nodes(plan.program.graph, false) : plan.steep;
  for (const auto& [shape, name] : all_shapes(inputs)) {
    plan.records.emplace(
        shape, make_record_layout(plan.program, node_shapes(plan.program.graph, shape), shape, channels));
    // An input with itself is demanded other offsets than pairs are: the variances before every stage are offset 0.
    plan.selves.emplace(shape, make_geometry(plan.program, shape, shape, Purpose::state, false));
  }
  for (const auto& [of_left, left_name] : left)
    for (const auto& [of_right, right_name] : right)
      plan.pairs.emplace(std::pair(of_left, of_right),
                         make_geometry(plan.program, of_left, of_right, Purpose::result, false));
  for (const auto& [shapes_of_pair, geometry] : plan.pairs)
    plan.block_side = std::max(plan.block_side, block_side_of(plan.program, geometry));
  const auto& nodes = plan.program.graph.nodes;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    if (!multiplies_features(nodes[id].operation)) continue;
    plan.sources.push_back({id, {}});
    if (!plan.program.has_positions[id]) plan.sources.back().vector_place = plan.vector_count++;
  }
  return plan;
}

}  // namespace widelimit
