#pragma once

#include "kernel/derivatives/tape_entry.hpp"
#include "network/graph.hpp"

namespace widelimit {

/// A pooling between two inputs, entry by entry.
class EntryPooling {
 public:
  /// `left`, `right`: sizes in front of it.
  EntryPooling(const PoolNode& node, const Index3& left, const Index3& right);

  /// Calls body(entry of the plane, entry of the pooled matrix) for all that meet.
  template <typename Body>
  void for_each_meeting(const PlacedPlane& plane, const Body& body) const {
    plane.for_each_piece([&](const Box& box, Index begin) {
      if (box.empty()) return;
      for_each_row(box.extent, [&](Index x, Index y) {
        for (Index z = 0; z < box.extent[2]; ++z) {
          const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
          const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
          const Index entry = begin + plane.layout.at(x, y) + z;
          for_each_window(a, left_front_, left_pooled_, [&](Index pooled_left) {
            for_each_window(b, right_front_, right_pooled_, [&](Index pooled_right) {
              body(entry, pooled_left * product(right_pooled_) + pooled_right);
            });
          });
        }
      });
    });
  }

  /// Of an entry in the pooled one.
  [[nodiscard]] double weight() const { return weight_; }

 private:
  /// Calls body(number) for the windows that a position is in.
  template <typename Body>
  void for_each_window(const Index3& position, const Index3& front, const Index3& pooled,
                       const Body& body) const {
    Index3 first, last;
    for (std::size_t k = 0; k < 3; ++k) {
      const Index padded = position[k] + front[k];
      const Index behind = padded - window_.size[k] + 1;
      first[k] = behind <= 0 ? 0 : (behind + window_.stride[k] - 1) / window_.stride[k];
      last[k] = std::min(padded / window_.stride[k], pooled[k] - 1);
    }
    for (Index x = first[0]; x <= last[0]; ++x)
      for (Index y = first[1]; y <= last[1]; ++y)
        for (Index z = first[2]; z <= last[2]; ++z) body(position_number({x, y, z}, pooled));
  }

  Window3 window_;
  Index3 left_front_, right_front_;
  Index3 left_pooled_, right_pooled_;
  double weight_;
};

inline EntryPooling::EntryPooling(const PoolNode& node, const Index3& left, const Index3& right)
    : window_{node.window},
      left_front_{window_.front(left)},
      right_front_{window_.front(right)},
      left_pooled_{window_.output(left)},
      right_pooled_{window_.output(right)} {
  const auto size = static_cast<double>(product(window_.size));
  weight_ = node.kind == PoolKind::average ? 1 / (size * size) : 1.0;
}

}  // namespace widelimit
