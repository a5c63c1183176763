#pragma once

#include <vector>

#include "kernel/backends/cpu/backward/plan/backward_chain.hpp"
#include "kernel/backends/cpu/backward/planes/input_record.hpp"
#include "kernel/backends/cpu/planes/engine_program.hpp"
#include "kernel/backends/cpu/planes/placed_plane.hpp"

/// What tests of the backward engine's planes share.
namespace widelimit::testing {

/// A plane step as the backward pass sees it.
inline BackwardChain backward_chain(const EngineProgram& engine, std::size_t step,
                                    bool with_scalars = false) {
  const PairGeometry& geometry = engine.pair.geometry;
  return {engine.program,           geometry, engine.plane_step(step).chain,
          geometry.chains.at(step), true,     with_scalars};
}

/// The offsets of a chain's root, with complementary ones together or each alone.
enum class Complements { together, apart };
inline std::vector<PlaneOffsets> root_offsets(const BackwardChain& chain, Complements complements) {
  std::array<std::vector<AxisOffsets>, 3> axes = chain.chain_geometry.offsets;
  if (complements == Complements::apart)
    for (std::vector<AxisOffsets>& axis : axes) {
      std::vector<AxisOffsets> alone;
      for (const AxisOffsets& several : axis)
        for (std::size_t n = 0; n < static_cast<std::size_t>(several.count); ++n)
          alone.push_back({{several.offset[n], 0}, 1});
      axis = alone;
    }
  std::vector<PlaneOffsets> offsets;
  for (const AxisOffsets& z : axes[2])
    for (const AxisOffsets& x : axes[0])
      for (const AxisOffsets& y : axes[1]) offsets.push_back({x, y, z});
  return offsets;
}

/// Random features, and variances from 2 to 3 with the auxiliary arrays that row stages make of them.
inline InputRecord<double> random_record(const Program& program, const RecordLayout& layout,
                                         std::mt19937& generator) {
  InputRecord<double> record(layout);
  std::uniform_real_distribution<double> variance(2, 3);
  const auto& nodes = program.graph.nodes;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const Index positions = layout.positions[id];
    for (Index k = 0; k < layout.channels[id]; ++k) {
      const std::vector<double> numbers = normal_numbers(positions, generator);
      std::copy(numbers.begin(), numbers.end(), record.features(id, k));
    }
    const auto* row = std::get_if<RowNode>(&nodes[id].operation);
    if (row == nullptr) continue;
    for (Index a = 0; a < positions; ++a) record.variances(id)[a] = variance(generator);
    prepare_row_stage(record, id, *row->stage);
  }
  return record;
}

}  // namespace widelimit::testing
