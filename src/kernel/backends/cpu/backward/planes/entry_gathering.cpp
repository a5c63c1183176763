#include "kernel/backends/cpu/backward/planes/entry_gathering.hpp"

#include <algorithm>

#include "network/plane_mapping.hpp"

namespace widelimit {
namespace {

Index3 sizes_after(const PlaneMapping& mapping, const Shape& shape) {
  const auto axes = mapping.sparse_axes(shape);
  return {axes[0].rows(), axes[1].rows(), axes[2].rows()};
}

}  // namespace

EntryGathering::EntryGathering(const Window& window, PoolKind kind, const Index3& left, const Index3& right)
    : left_sizes_{left},
      right_sizes_{right},
      columns_{product(Window3(window).output(right))},
      left_{pool_readers(Window3(window), kind, left)},
      right_{pool_readers(Window3(window), kind, right)} {}

EntryGathering::EntryGathering(const PlaneMapping& mapping, const Shape& left, const Shape& right)
    : left_sizes_{three_axes(left)},
      right_sizes_{three_axes(right)},
      columns_{product(sizes_after(mapping, right))},
      left_{map_readers(mapping, left)},
      right_{map_readers(mapping, right)} {}

/// The positions of all windows along one axis. Those in the padding are left out; the weight of the others stays
/// that of a whole window.
EntryGathering::AxisReaders EntryGathering::of_window(const Window3& window, const Index3& sizes,
                                                      std::size_t axis, double weight) {
  AxisReaders readers;
  const Index front = window.front(sizes)[axis];
  for (Index after = 0; after < window.output(sizes)[axis]; ++after)
    for (Index tap = 0; tap < window.size[axis]; ++tap) {
      const Index before = window.stride[axis] * after - front + tap;
      if (before >= 0 && before < sizes[axis]) readers.push_back({after, before, weight});
    }
  return readers;
}

/// Weights of several axes multiply. The readers are ordered by the position that they read, which is how planes pass
/// by.
EntryGathering::Readers EntryGathering::all_readers(const std::array<AxisReaders, 3>& axes,
                                                    const Index3& before, const Index3& after) {
  Readers readers(static_cast<std::size_t>(product(before)));
  for (const AxisReader& x : axes[0])
    for (const AxisReader& y : axes[1])
      for (const AxisReader& z : axes[2]) {
        const Index from = position_number({x.before, y.before, z.before}, before);
        readers[static_cast<std::size_t>(from)].push_back(
            {position_number({x.after, y.after, z.after}, after), x.weight * y.weight * z.weight});
      }
  return readers;
}

EntryGathering::Readers EntryGathering::pool_readers(const Window3& window, PoolKind kind,
                                                     const Index3& sizes) {
  std::array<AxisReaders, 3> axes;
  for (std::size_t k = 0; k < 3; ++k)
    axes[k] = of_window(window, sizes, k,
                        kind == PoolKind::average ? 1 / static_cast<double>(window.size[k]) : 1.0);
  return all_readers(axes, sizes, window.output(sizes));
}

EntryGathering::Readers EntryGathering::map_readers(const PlaneMapping& mapping, const Shape& shape) {
  const auto maps = mapping.sparse_axes(shape);
  std::array<AxisReaders, 3> axes;
  for (std::size_t k = 0; k < 3; ++k)
    for (Index row = 0; row < maps[k].rows(); ++row)
      for (std::size_t i = maps[k].begin[static_cast<std::size_t>(row)];
           i < maps[k].begin[static_cast<std::size_t>(row) + 1]; ++i)
        axes[k].push_back({row, maps[k].column[i], maps[k].weight[i]});
  return all_readers(axes, three_axes(shape), sizes_after(mapping, shape));
}

std::unique_ptr<EntryGathering> gathering_of(const Program& program, const PairGeometry& geometry,
                                             NodeId id) {
  const Node& node = program.graph.nodes[id];
  if (!gathers_planes(node.operation)) return nullptr;
  const NodeId input = node.inputs[0];
  if (const PlaneMapping* mapping = plane_mapping(pair_stage_of(node.operation)))
    return std::make_unique<EntryGathering>(*mapping, geometry.shapes.left[input],
                                            geometry.shapes.right[input]);
  const auto& pool = std::get<PoolNode>(node.operation);
  return std::make_unique<EntryGathering>(pool.window, pool.kind, geometry.left_sizes[input],
                                          geometry.right_sizes[input]);
}

}  // namespace widelimit
