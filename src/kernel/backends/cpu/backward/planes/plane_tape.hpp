#pragma once

#include <vector>

#include "kernel/aligned_buffer.hpp"
#include "kernel/backends/cpu/backward/plan/backward_chain.hpp"
#include "kernel/backends/cpu/planes/placed_plane.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/backends/cpu/planes/plane_sizes.hpp"

namespace widelimit {

/// An instruction's planes of all pairs of a stack, one after the other, and their adjoints.
template <typename Scalar>
struct TapePlanes {
  PlacedPlane plane;
  Plane<Scalar> value{nullptr, nullptr};
  Plane<Scalar> adjoint{nullptr, nullptr};
  bool has_adjoint = false;  ///< Whether a reader has written an adjoint.

  [[nodiscard]] std::size_t size(Index stacked) const {
    return plane.is_empty ? 0 : static_cast<std::size_t>(stacked * plane.layout.length);
  }
};

/// The planes of a chain's instructions. Those that the backward pass reads have places of their own. All others, and
/// adjoints, share slots that are used again, so that the first-level cache holds most of what is worked on.
template <typename Scalar>
class PlaneTape {
 public:
  /// The chain must outlive the tape.
  explicit PlaneTape(const BackwardChain& chain);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] TapePlanes<Scalar>& operator[](std::size_t i) { return entries_[i]; }
  [[nodiscard]] const TapePlanes<Scalar>& operator[](std::size_t i) const { return entries_[i]; }
  [[nodiscard]] TapePlanes<Scalar>& root() { return entries_.back(); }

  /// Places the planes of all instructions for a plane of the root.
  void place(const PlaneOffsets& offsets);
  /// The length of the longest plane that is placed.
  [[nodiscard]] Index length() const;
  /// Forgets all adjoints.
  void begin_backward();

  /// Rows for short use: 0 and 1 by convolutions, 2 for what is added to adjoints, 3 for adjoints of variances.
  [[nodiscard]] Plane<Scalar> scratch(std::size_t number) { return slot(slots_ + number); }

 private:
  [[nodiscard]] std::vector<std::size_t> value_slots();
  [[nodiscard]] std::vector<std::size_t> adjoint_slots();
  [[nodiscard]] Plane<Scalar> slot(std::size_t number);

  const BackwardChain& chain_;
  PlaneSizes sizes_;
  std::vector<TapePlanes<Scalar>> entries_;
  std::size_t slots_ = 0;
  AlignedBuffer<Scalar> buffer_;
};

}  // namespace widelimit
