#include "kernel/backends/cpu/planes/plane_ends.hpp"

#include "kernel/backends/cpu/planes/plane_map.hpp"
#include "kernel/backends/cpu/planes/plane_pool.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {
namespace {

/// The four ways in which the planes of a chain end. This one adds up the entries of each pair for a readout.
template <typename Scalar>
class ReadoutEnd final : public PlaneEnd<Scalar> {
 public:
  ReadoutEnd(const TileWork<Scalar>& work, ReadoutSums<Scalar>& sums, NodeId target)
      : work_{work},
        sums_{sums},
        target_{target},
        diagonal_only_{reads_of(work.pair.node(target).operation) == Reads::equal_positions} {}

  void begin_tile() override { sums_.clear(target_, work_.tile().pair_count()); }

  void put(const PlacedPlane& plane, const Stack& stack, const Plane<Scalar>& planes) override {
    // With demand for everything, planes of all offsets come, but flatten reads only equal positions.
    if (diagonal_only_ && !plane.is_diagonal) return;
    const Index length = plane.layout.length;
    for (Index n = 0; n < stack.count; ++n)
      // Guards are zero, so a plane is added up in one sweep, from its first entry to its last.
      sums_.add(target_, stack.first_pair + n, planes + n * length, length);
  }

 private:
  const TileWork<Scalar>& work_;
  ReadoutSums<Scalar>& sums_;
  NodeId target_;
  bool diagonal_only_;
};

/// Adds the planes up for a pooling. Offsets that agree along the last axis are a group, at whose end sums along rows
/// follow.
template <typename Scalar>
class PoolEnd final : public PlaneEnd<Scalar> {
 public:
  PoolEnd(const TileWork<Scalar>& work, NodeId target)
      : work_{work},
        pool_(work.pair, target, work.stores.at(target, 0), work.workspace.part(WorkspacePart::row_sums)),
        scratch_{work.workspace.scratch(0).nngp},
        scratch_size_{work.pair.planes.capacity - row_padding} {}

  void begin_tile() override { pool_.begin_tile(work_.tile().pair_count()); }
  void place(const PlacedPlane& plane) override { pool_.place(plane.axis, plane.layout); }
  void put(const PlacedPlane& /*plane*/, const Stack& stack, const Plane<Scalar>& planes) override {
    pool_.add(stack.first_pair, stack.count, planes);
  }
  void end_group() override { pool_.end_group(scratch_, scratch_size_); }

 private:
  const TileWork<Scalar>& work_;
  PlanePool<Scalar> pool_;
  Scalar* scratch_;
  Index scratch_size_;
};

/// Adds the planes to those of a position map, by the same protocol of groups as a pooling.
template <typename Scalar>
class MapEnd final : public PlaneEnd<Scalar> {
 public:
  MapEnd(const TileWork<Scalar>& work, NodeId target)
      : work_{work},
        map_(work.pair, target, work.stores.at(target, 0), work.workspace.part(WorkspacePart::row_sums)) {}

  void begin_tile() override { map_.begin_tile(work_.tile().pair_count()); }
  void place(const PlacedPlane& plane) override { map_.place(plane.axis, plane.layout); }
  void put(const PlacedPlane& /*plane*/, const Stack& stack, const Plane<Scalar>& planes) override {
    map_.add(stack.first_pair, stack.count, planes);
  }
  void end_group() override { map_.end_group(); }

 private:
  const TileWork<Scalar>& work_;
  PlaneMap<Scalar> map_;
};

/// Keeps the planes for a later step to read.
template <typename Scalar>
class StoreEnd final : public PlaneEnd<Scalar> {
 public:
  StoreEnd(const TileWork<Scalar>& work, NodeId target) : work_{work}, target_{target} {}

  void begin_tile() override { work_.stores.forget(target_, work_.tile().pair_count()); }

  void put(const PlacedPlane& plane, const Stack& stack, const Plane<Scalar>& planes) override {
    work_.stores.save(target_, plane, stack.first_pair, stack.count, planes);
  }

 private:
  const TileWork<Scalar>& work_;
  NodeId target_;
};

}  // namespace

template <typename Scalar>
std::unique_ptr<PlaneEnd<Scalar>> make_plane_end(const TileWork<Scalar>& work, ReadoutSums<Scalar>& sums,
                                                 NodeId target) {
  switch (reads_of(work.pair.node(target).operation)) {
    case Reads::equal_positions:
    case Reads::all_positions:
      return std::make_unique<ReadoutEnd<Scalar>>(work, sums, target);
    case Reads::pooled:
      return std::make_unique<PoolEnd<Scalar>>(work, target);
    case Reads::mapped:
      return std::make_unique<MapEnd<Scalar>>(work, target);
    case Reads::inputs:
    case Reads::entries:
    case Reads::windows:
    case Reads::kept_windows:
    case Reads::matrix:
      break;
  }
  return std::make_unique<StoreEnd<Scalar>>(work, target);
}

template std::unique_ptr<PlaneEnd<float>> make_plane_end(const TileWork<float>&, ReadoutSums<float>&, NodeId);
template std::unique_ptr<PlaneEnd<double>> make_plane_end(const TileWork<double>&, ReadoutSums<double>&,
                                                          NodeId);

}  // namespace widelimit
