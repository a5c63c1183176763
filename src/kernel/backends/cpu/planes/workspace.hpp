#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "kernel/aligned_buffer.hpp"
#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"
#include "kernel/backends/cpu/planes/tile.hpp"

namespace widelimit {

/// The number of inputs on either side whose products are made together (ProductBlocks).
inline constexpr Index block_side = 6;

/// What a tile needs memory for.
enum class WorkspacePart {
  slots,     ///< Planes, or stacks of planes, of a chain's instructions; two more are scratch.
  packs,     ///< Auxiliary arrays, packed for a plane.
  strips,    ///< Auxiliary arrays, cut for offsets that agree along the last axis.
  stores,    ///< Kept nodes, pair by pair.
  matrices,  ///< What pair stages read and their scratch, of one pair.
  products,  ///< Products of a block of inputs.
  row_sums,  ///< Sums of rows of poolings and maps.
};

/// The numbers of every part. Parts are one after the other, each on pages of its own.
struct WorkspaceLayout {
  static constexpr std::size_t part_count = 7;

  std::array<Index, part_count> size{};
  std::size_t slot_count = 0;  ///< The number of slots without those for scratch.

  WorkspaceLayout() = default;
  /// The layout for tiles of at most this size; `state` is the layout of one of the inputs.
  WorkspaceLayout(const PairLayout& pair, const StateLayout& state, const TileSize& tile);

  [[nodiscard]] Index& of(WorkspacePart part) { return size[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Index of(WorkspacePart part) const { return size[static_cast<std::size_t>(part)]; }
  [[nodiscard]] Index begin(WorkspacePart part) const {
    return std::accumulate(size.begin(), size.begin() + static_cast<std::ptrdiff_t>(part), Index{0});
  }
  [[nodiscard]] Index total() const { return std::accumulate(size.begin(), size.end(), Index{0}); }
};

/// True if an instruction reads auxiliary arrays of the inputs. A stage may have none.
[[nodiscard]] bool reads_arrays(const Program& program, const Instruction& instruction);

/// In builds with assertions or the address sanitizer, numbers that have not been written are NaN, so that reading
/// them shows in the results.
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__)
inline constexpr bool poisons_workspace = true;
#else
inline constexpr bool poisons_workspace = false;
#endif

/// The memory of a thread: one buffer, divided up by a layout.
template <typename Scalar>
class Workspace {
 public:
  /// Makes room; the contents of parts are lost. Slots and products are set to zero, so that the margins before their
  /// planes are zero, and so are sums of rows: windows read up to a vector beyond them, and multiply it by 0, which
  /// makes nothing of whatever an earlier network may have left there if that is a number.
  void carve(const WorkspaceLayout& layout, const PlaneSizes& planes, bool with_ntk) {
    layout_ = layout;
    planes_ = planes;
    with_ntk_ = with_ntk;
    buffer_.grow(layout.total());
    if constexpr (poisons_workspace)
      std::fill_n(buffer_.data(), layout.total(), std::numeric_limits<Scalar>::quiet_NaN());
    for (const WorkspacePart cleared :
         {WorkspacePart::slots, WorkspacePart::products, WorkspacePart::row_sums})
      std::fill_n(part(cleared), layout.of(cleared), Scalar{0});
  }

  [[nodiscard]] Scalar* part(WorkspacePart part) { return buffer_.data() + layout_.begin(part); }
  /// The planes of a slot, after their margin.
  [[nodiscard]] Plane<Scalar> slot(std::size_t number) {
    Scalar* nngp = part(WorkspacePart::slots) +
                   static_cast<Index>(number) * (with_ntk_ ? 2 : 1) * planes_.slot() + planes_.front;
    return {nngp, with_ntk_ ? nngp + planes_.slot() : nullptr};
  }
  /// The slots that belong to no instruction: 0 and 1.
  [[nodiscard]] Plane<Scalar> scratch(std::size_t number) { return slot(layout_.slot_count + number); }

 private:
  WorkspaceLayout layout_;
  PlaneSizes planes_;
  bool with_ntk_ = false;
  AlignedBuffer<Scalar> buffer_;
};

}  // namespace widelimit
