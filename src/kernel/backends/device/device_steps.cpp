#include "kernel/backends/device/device_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernel/backends/device/attention_steps.hpp"
#include "kernel/backends/device/map_source.hpp"
#include "kernel/backends/device/row_windows.hpp"
#include "kernel/backends/device/source_beginning.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// Planes, or work-items with an entry of a map each, that one work-group takes before another one takes the next of
/// the same pair. The number of groups of a pair must not depend on the tile, or sums would have another order.
constexpr Index planes_of_group = 16, entries_of_item = 8, most_shares_of_pair = 64;

std::vector<int> flat(const ChainPlaces& places) {
  std::vector<int> numbers;
  for (const auto& axis : places.offsets)
    for (const ChainPlaces::Offset& offset : axis) {
      numbers.push_back(offset.first);
      numbers.push_back(offset.second);
    }
  return numbers;
}

/// The place of an input with itself.
ChainPlaces zero_places() {
  ChainPlaces zero;
  for (std::size_t k = 0; k < 3; ++k) {
    zero.offsets[k] = {{0, 0}};
    zero.whole[k] = true;
  }
  return zero;
}

/// What a map reads and leaves between its two sides, while its step is computed.
struct MapMemory {
  PositionMap map;
  KeptPlanes before, between;
};

class StepsBuilder {
 public:
  StepsBuilder(const Program& program, const PairGeometry& geometry, const StateLayout& left,
               const StateLayout& right, const ChainSourceOptions& options)
      : program_{program}, geometry_{geometry}, left_{left}, right_{right}, options_{options} {
    place_nodes();
    for (std::size_t s = 0; s < program.steps.size(); ++s) {
      place_map(s);
      if (is_matrix_step(s) && is_needed(s))
        kept_.size = std::max(kept_.size, nodes_size_ + matrix_stage_numbers(matrix_stage(s), options_));
    }
    // The kernels count entries by ints.
    if (kept_.size > std::numeric_limits<int>::max())
      throw DeviceError(
          fmt::format("device: {} and other layers keep {} numbers of each pair, which is too many; choose "
                      "smaller inputs, earlier "
                      "poolings or the device cpu",
                      program.graph.nodes[kept_.nodes.begin()->first].path, kept_.size));
  }

  /// `records`: before each step, inputs are recorded.
  DevicePair build(bool records) {
    DevicePair pair;
    for (std::size_t s = 0; s < program_.steps.size(); ++s)
      written_for(program_.graph.nodes[target_node(s)].path, [&] {
        if (records) add_record(s, pair.steps);
        add_step(s, records, pair.steps);
      });
    pair.kept = kept_.size * (options_.kernel == Kernel::with_ntk ? 2 : 1);
    return pair;
  }

 private:
  [[nodiscard]] bool is_run(std::size_t s) const {
    return std::holds_alternative<PlaneStep>(program_.steps[s]);
  }
  [[nodiscard]] const PlaneStep& step(std::size_t s) const { return std::get<PlaneStep>(program_.steps[s]); }
  [[nodiscard]] NodeId target_node(std::size_t s) const {
    return is_run(s) ? step(s).target : std::get<PairStep>(program_.steps[s]).node;
  }
  [[nodiscard]] const Operation& target(std::size_t s) const {
    return program_.graph.nodes[target_node(s)].operation;
  }
  [[nodiscard]] bool is_matrix_step(std::size_t s) const { return !is_run(s) && is_matrix_stage(target(s)); }
  [[nodiscard]] MatrixStage matrix_stage(std::size_t s) const {
    return {program_, target_node(s), geometry_, left_, right_};
  }
  /// Whether a step leads to nothing but readouts. A readout that is pulled back has its sums itself.
  [[nodiscard]] bool only_reads_out(std::size_t s) const {
    const auto& nodes = program_.graph.nodes;
    if (reads_out(target(s)) || is_pulled_readout(target(s))) return true;
    const NodeId node = target_node(s);
    return std::all_of(nodes.begin(), nodes.end(), [&](const Node& reader) {
      return is_pulled_readout(reader.operation) ||
             std::find(reader.inputs.begin(), reader.inputs.end(), node) == reader.inputs.end();
    });
  }
  /// Inputs with themselves need only what leads to variances.
  [[nodiscard]] bool is_needed(std::size_t s) const {
    return reads_out(target(s)) || !geometry_.demanded[target_node(s)].empty();
  }
  [[nodiscard]] KeptPlanes planes_of(NodeId node) const {
    return {geometry_.left_sizes[node], geometry_.right_sizes[node], geometry_.demanded[node]};
  }

  void place_nodes() {
    for (NodeId node = 0; node < program_.graph.nodes.size(); ++node) {
      if (!program_.kept[node] || !program_.has_positions[node] || geometry_.demanded[node].empty() ||
          is_pulled_readout(program_.graph.nodes[node].operation))
        continue;
      KeptPlanes planes = planes_of(node);
      planes.first = kept_.size;
      kept_.size += planes.size();
      kept_.nodes.emplace(node, planes);
    }
    nodes_size_ = kept_.size;
  }

  /// Maps take turns with the memory behind the nodes.
  void place_map(std::size_t s) {
    maps_.emplace_back();
    if ((is_run(s) && !gathers_planes(target(s))) || is_matrix_step(s) || !is_needed(s)) return;
    const NodeId node = target_node(s), input = program_.graph.nodes[node].inputs[0];
    PositionMap map = position_map(program_, node, geometry_);
    KeptPlanes between = planes_between(map, kept_.nodes.at(node)), before = planes_of(input);
    // Where no chain stands before the map, it reads a node.
    before.first = is_run(s) ? nodes_size_ : kept_.nodes.at(input).first;
    between.first = nodes_size_ + (is_run(s) ? before.size() : 0);
    kept_.size = std::max(kept_.size, between.first + between.size());
    maps_.back().emplace(MapMemory{std::move(map), before, between});
  }

  [[nodiscard]] DeviceStep run(std::size_t s, const ChainPlaces& places, const KeptPlanes* kept_target,
                               const ChainSourceOptions& options) const {
    const Chain& chain = step(s).chain;
    const Index shares = shares_of(places.planes(), planes_of_group);
    ChainSourceOptions of_chain = options;
    of_chain.form =
        fitting_form(options.form, {.lanes = options.group,
                                    .largest_group = options.largest_group,
                                    .local_memory = options.local_memory,
                                    .plane_bytes = chain_plane_bytes(chain, geometry_, options),
                                    .shares = shares,
                                    .has_rows = has_equal_rows(chain, geometry_, geometry_.chains[s])});
    const ChainSource source(program_, chain, geometry_, geometry_.chains[s], places, left_, right_,
                             {kept_, kept_target}, of_chain);
    return {.source = source.text(),
            .path = program_.graph.nodes[chain.root].path,
            .offsets = flat(places),
            .shares = shares,
            .local_bytes = source.local_bytes(),
            .form = of_chain.form};
  }

  [[nodiscard]] DeviceStep record(std::size_t s) const {
    ChainSourceOptions options = options_;
    options.records = true;
    return run(s, zero_places(), nullptr, options);
  }

  void add_record(std::size_t s, std::vector<DeviceStep>& steps) const {
    if (is_run(s)) {
      steps.push_back(record(s));
    } else if (is_matrix_step(s)) {
      if (auto of_stage = matrix_stage_record(matrix_stage(s), kept_, options_))
        steps.push_back(std::move(*of_stage));
    }
  }

  void add_step(std::size_t s, bool records, std::vector<DeviceStep>& steps) const {
    const bool ends_positions = reads_out(target(s));
    if (!is_needed(s) || (records && only_reads_out(s))) return;
    if (is_matrix_step(s)) {
      for (DeviceStep& of_stage : matrix_stage_steps(matrix_stage(s), kept_, nodes_size_, options_))
        steps.push_back(std::move(of_stage));
      return;
    }
    if (!is_run(s)) return add_map(s, steps);
    if (ends_positions && is_pulled_readout(program_.graph.nodes[step(s).chain.root].operation)) return;
    const ChainPlaces places = make_chain_places(program_, step(s), geometry_, geometry_.chains[s]);
    const NodeId node = step(s).target;
    if (ends_positions) {
      steps.push_back(run(s, places, nullptr, options_));
      steps.back().sums = {node, readout_weight(program_.graph, geometry_, node)};
      return;
    }
    if (!maps_[s]) {
      steps.push_back(run(s, places, &kept_.nodes.at(node), options_));
      return;
    }
    steps.push_back(run(s, places, &maps_[s]->before, options_));
    add_map(s, steps);
  }

  void add_map(std::size_t s, std::vector<DeviceStep>& steps) const {
    const NodeId node = target_node(s);
    const auto& [map, before, between] = *maps_[s];
    const MapSources sources = map_sources(map, before, between, kept_.nodes.at(node), kept_.size, options_);
    const auto add = [&](const std::string& source, Index entries) {
      steps.push_back({.source = source,
                       .path = program_.graph.nodes[node].path,
                       .offsets = {0},
                       .shares = shares_of(entries, entries_of_item * options_.group)});
    };
    add(sources.left, sources.between);
    add(sources.right, sources.after);
  }

  const Program& program_;
  const PairGeometry& geometry_;
  const StateLayout& left_;
  const StateLayout& right_;
  ChainSourceOptions options_;
  KeptNodes kept_;
  Index nodes_size_ = 0;
  std::vector<std::optional<MapMemory>> maps_;  ///< [step]
};

}  // namespace

Index shares_of(Index count, Index of_group) {
  return std::clamp<Index>((count + of_group - 1) / of_group, 1, most_shares_of_pair);
}

Index DevicePair::most_shares() const {
  Index most = 1;
  for (const DeviceStep& step : steps) most = std::max(most, step.shares);
  return most;
}

DevicePair pair_steps(const Program& program, const PairGeometry& geometry, const StateLayout& left,
                      const StateLayout& right, const ChainSourceOptions& options) {
  return StepsBuilder(program, geometry, left, right, options).build(false);
}

DevicePair record_steps(const Program& program, const PairGeometry& geometry, const StateLayout& state,
                        const ChainSourceOptions& options) {
  return StepsBuilder(program, geometry, state, state, options).build(true);
}

}  // namespace widelimit
