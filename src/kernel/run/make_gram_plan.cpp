#include "kernel/run/make_gram_plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/backends/cpu/planes/workspace.hpp"
#include "kernel/backends/device/device_choice.hpp"
#include "kernel/backends/device/device_plan.hpp"
#include "kernel/inputs/features.hpp"
#include "kernel/range/constant_checks.hpp"
#include "kernel/readouts/pair_sums.hpp"
#include "kernel/readouts/pulled_readout.hpp"
#include "network/graph_stage.hpp"
#include "network/lowering.hpp"
#include "numerics/blas_threads.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Larger tiles share more packing of auxiliary arrays. But the whole workspace of a tile should stay in the caches,
/// and what each plane touches should stay in the second-level cache: the matrices of all pairs, and the auxiliary
/// arrays of both sides for one offset. The three limits are 8, 2.25 and 0.75 MiB.
constexpr Index most_inputs_a_side = 16;
constexpr std::size_t workspace_bytes_wanted = std::size_t{8} << 20;
constexpr std::size_t matrix_bytes_wanted = std::size_t{9} << 18;
constexpr std::size_t plane_bytes_wanted = std::size_t{3} << 18;
/// Fewer tiles than this would leave threads without work.
constexpr Index tiles_a_thread = 3;

/// Tiles of vectors are the blocks of a matrix product, so their grid depends on nothing but the number of
/// inputs: large blocks are multiplied faster, small ones leave work for every thread.
constexpr Index vector_tile_side(Index inputs) { return inputs < 2048 ? 256 : largest_vector_tile_side; }

/// Numbers of the auxiliary arrays of one input that a plane reads, on average.
double plane_numbers(const GramPlan& plan, const PairGeometry& geometry, const StateLayout& state) {
  double most = 0;
  for (std::size_t s = 0; s < plan.program.steps.size(); ++s) {
    const auto* plane = std::get_if<PlaneStep>(&plan.program.steps[s]);
    if (plane == nullptr) continue;
    double numbers = 0, planes = 1;
    // Offsets are a product of one set for each axis. The entries of all planes divided by their number are the size
    // of an average plane.
    for (const auto& offsets : geometry.chains[s].offsets) planes *= static_cast<double>(offsets.size());
    for (const Instruction& instruction : plane->chain.instructions) {
      const NodeId node = instruction.node;
      if (instruction.loads || geometry.demanded[node].empty()) continue;
      numbers += static_cast<double>(state.arrays[node]) * geometry.entries(node) / planes;
    }
    most = std::max(most, numbers);
  }
  return most;
}

Index choose_tile_side(const GramPlan& plan, const Shape& shape, const GramSize& size,
                       std::size_t scalar_bytes, const GramOptions& options) {
  if (plan.vectors_only) return vector_tile_side(size.inputs);
  if (options.tile_size > 0) return options.tile_size;
  if (plan.device != nullptr) return plan.device->tile_side(plan, shape);
  const PairLayout pair(plan.program, plan.demand(Purpose::result), shape, shape);
  const StateLayout& state = plan.state_layouts.at(shape);
  const auto bytes = [scalar_bytes](auto numbers) {
    return scalar_bytes * static_cast<std::size_t>(numbers);
  };
  const double of_input = plane_numbers(plan, pair.geometry, state);
  Index side = most_inputs_a_side;
  const auto fits = [&] {
    return bytes(WorkspaceLayout(pair, state, {side, side}).total()) <= workspace_bytes_wanted &&
           bytes(side * side * pair.stores.matrix_size) <= matrix_bytes_wanted &&
           bytes(2 * static_cast<double>(side) * of_input) <= plane_bytes_wanted;
  };
  while (side > 1 && !fits()) --side;
  const Index threads = numerics::resolve_threads(options.threads, "gram");
  const auto tiles = [&] { return size.pairs / (side * std::clamp<Index>(size.fewer_inputs, 1, side)); };
  // A side is no longer than the smaller batch, which may have fewer inputs than a tile.
  while (threads > 1 && side > 1 && tiles() < tiles_a_thread * threads) --side;
  return side;
}

/// The vectors of consecutive inputs are rows of a matrix, so all states need one size.
void equalise_sizes(std::map<Shape, StateLayout>& layouts) {
  Index size = 0;
  for (const auto& [shape, layout] : layouts) size = std::max(size, layout.size);
  for (auto& [shape, layout] : layouts) layout.size = size;
}

bool reads_graphs(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& node) {
    const PairStage* pair = pair_stage_of(node.operation);
    return pair != nullptr && dynamic_cast<const GraphStage*>(pair) != nullptr;
  });
}

bool states_read_ntk(const Graph& graph, const Shape& input) {
  const std::vector<Shape> shapes = node_shapes(graph, input);
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    const PairStage* pair = pair_stage_of(node.operation);
    const FunctionalStage* stage = pair == nullptr ? nullptr : functional_stage(*pair);
    return stage != nullptr && stage->reads_own_ntk(shapes[node.inputs[0]]);
  });
}

/// The scatter of 16 replicates gives a standard error within about 20 %, and more of them would each have fewer
/// samples.
constexpr std::int64_t most_replicates = 16;

/// About 25 dense layers with nonlinearities. Up to here the roundings of float add up to at most half of 1e-6.
constexpr std::size_t most_instructions_in_float = 50;

}  // namespace

/// A matrix product beats sums over channels plane by plane if there are many channels and most offsets are demanded,
/// or if attention reads the matrix anyway. The entries of an image's plane are scattered over the matrix, so images
/// need more channels than sequences before it pays.
std::set<NodeId> matrix_inputs(const Graph& graph, const std::vector<Shape>& shapes, Index channels) {
  constexpr Index many_channels_of_sequences = 16, many_channels_of_images = 32;
  const std::vector<Offsets> demanded = demanded_offsets(graph, {shapes, shapes}, Purpose::result);
  std::set<NodeId> feeds_pair_stage, inputs;
  for (const Node& node : graph.nodes)
    if (reads_of(node.operation) == Reads::matrix) feeds_pair_stage.insert(node.inputs[0]);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!multiplies_features(graph.nodes[id].operation) || shapes[id].empty()) continue;
    const Index3 sizes = three_axes(shapes[id]);
    const bool most = 2 * static_cast<double>(demanded[id].count()) > Offsets::count_all(sizes, sizes);
    const Index many = shapes[id].size() > 1 ? many_channels_of_images : many_channels_of_sequences;
    if (most && (channels >= many || feeds_pair_stage.contains(id))) inputs.insert(id);
  }
  return inputs;
}

std::size_t state_memory(const GramPlan& plan, std::size_t wanted) {
  return plan.device == nullptr ? wanted : plan.device->state_memory(wanted);
}

std::int64_t sampled_replicates(const Graph& graph) {
  return graph.fewest_samples == 0 ? 1 : std::min(graph.fewest_samples, most_replicates);
}

GramPlan make_plan(const Network& network, const NamedShapes& shapes, const GramSize& size,
                   std::size_t scalar_bytes, const GramOptions& options, const Replicate& replicate) {
  // A device multiplies inputs plane by plane, and attention exactly.
  const bool on_cpu = is_cpu(options.device);
  LoweredNetwork lowered =
      lower_for(network, shapes, {size.masks, size.channels}, replicate,
                options.exact_attention || !on_cpu ? Readouts::pulled_back_exactly : Readouts::pulled_back);
  // lower_for() puts the largest shape first. It decides what is kept as a matrix for all shapes, so that the program
  // is one.
  const std::vector<Shape>& of_largest = lowered.shapes.front();
  const std::set<NodeId> products =
      on_cpu ? matrix_inputs(lowered.graph, of_largest, size.channels) : std::set<NodeId>();
  GramPlan plan{.program = make_program(std::move(lowered.graph), lowered.shapes, products),
                .kernel = options.kernels == Kernels::nngp ? Kernel::nngp_only : Kernel::with_ntk,
                .demand_everything = options.demand == GramOptions::Demand::everything,
                .channels = size.channels,
                .state_layouts = {},
                .tile_sides = {},
                .largest_tile_side = 1,
                .vectors_only = std::none_of(of_largest.begin(), of_largest.end(),
                                             [](const Shape& shape) { return !shape.empty(); }),
                .in_double = false,
                .masks = size.masks,
                .exact_attention = options.exact_attention};
  for (const auto& [shape, name] : shapes) {
    plan.state_layouts.emplace(
        shape, make_state_layout(plan.program, node_shapes(plan.program.graph, shape), shape, size.channels));
    plan.states_read_ntk = plan.states_read_ntk || states_read_ntk(plan.program.graph, shape);
  }
  // Each instruction after the positions rounds once for each pair. check_constants() below has to know the type in
  // which weights are applied.
  plan.in_double =
      (plan.vectors_only && plan.program.pair_rows.instructions.size() > most_instructions_in_float) ||
      reads_graphs(plan.program.graph);
  if (plan.in_double || scalar_bytes == sizeof(double))
    check_constants<double>(plan.program.graph);
  else
    check_constants<float>(plan.program.graph);
  if (plan.vectors_only) equalise_sizes(plan.state_layouts);
  if (!on_cpu)
    plan.device =
        std::make_shared<const DevicePlan>(open_devices(options.device), plan, scalar_bytes, size.pairs);
  if (options.tile_size < 0)
    throw ArgumentError(fmt::format("gram: tile_size must not be negative, got {}", options.tile_size));
  for (const auto& [shape, name] : shapes) {
    const Index side = choose_tile_side(plan, shape, size, scalar_bytes, options);
    plan.tile_sides.emplace(shape, side);
    plan.largest_tile_side = std::max(plan.largest_tile_side, side);
  }
  return plan;
}

}  // namespace widelimit
