#pragma once

#include <memory>
#include <vector>

#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "network/graph.hpp"

namespace widelimit {

class PlaneMapping;

/// The weights of a node that adds up entries of the node before it, position by position on either side: a pooling,
/// or a sparse map of positions. Forward and backward passes of PairBackwardPass go through the same list of entries.
class EntryGathering {
 public:
  /// `left` and `right` are the sizes before a pooling.
  EntryGathering(const Window& window, PoolKind kind, const Index3& left, const Index3& right);
  /// `left` and `right` are the shapes before a map.
  EntryGathering(const PlaneMapping& mapping, const Shape& left, const Shape& right);

  /// Calls body(entry of the plane before, entry of the matrix after, weight) for all entries that meet: K'_{a'b'} =
  /// sum over a, b of w_{a'a} w'_{b'b} K_{ab}.
  template <typename Body>
  void for_each_meeting(const PlacedPlane& plane, const Body& body) const {
    plane.for_each_piece([&](const Box& box, Index begin) {
      if (box.empty()) return;
      for_each_row(box.extent, [&](Index x, Index y) {
        const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2]};
        const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
        const Index entry = begin + plane.layout.at(x, y), left = position_number(a, left_sizes_),
                    right = position_number(b, right_sizes_);
        for (Index z = 0; z < box.extent[2]; ++z)
          for (const Reader& of_left : left_[static_cast<std::size_t>(left + z)])
            for (const Reader& of_right : right_[static_cast<std::size_t>(right + z)])
              body(static_cast<std::size_t>(entry + z),
                   static_cast<std::size_t>(of_left.position * columns_ + of_right.position),
                   of_left.weight * of_right.weight);
      });
    });
  }

 private:
  /// A position after the node that reads one before it.
  struct Reader {
    Index position;
    double weight;
  };
  using Readers = std::vector<std::vector<Reader>>;  ///< [position before]

  /// A position after the node that reads one before it, along one axis.
  struct AxisReader {
    Index after;
    Index before;
    double weight;
  };
  using AxisReaders = std::vector<AxisReader>;

  static AxisReaders of_window(const Window3& window, const Index3& sizes, std::size_t axis, double weight);
  static Readers all_readers(const std::array<AxisReaders, 3>& axes, const Index3& before,
                             const Index3& after);
  static Readers pool_readers(const Window3& window, PoolKind kind, const Index3& sizes);
  static Readers map_readers(const PlaneMapping& mapping, const Shape& shape);

  Index3 left_sizes_;
  Index3 right_sizes_;
  Index columns_;  ///< The number of right positions after the node.
  Readers left_;
  Readers right_;
};

/// What a node gathers of planes; null for readouts and nodes that are only kept.
[[nodiscard]] std::unique_ptr<EntryGathering> gathering_of(const Program& program,
                                                           const PairGeometry& geometry, NodeId id);

}  // namespace widelimit
