#pragma once

#include <cstddef>
#include <string>

#include "kernel/backends/device/chain_source.hpp"

/// Windows of items that have several rows of a column at once (DeviceForm::rows).
namespace widelimit {

/// Whether all planes of a chain have the same positions, of several rows: windows then move by one position, and
/// neighbouring rows see the same entries.
[[nodiscard]] bool has_equal_rows(const Chain& chain, const PairGeometry& geometry,
                                  const ChainGeometry& of_chain);

/// The windows of one layer at the rows y0, y0 + 1, ... of an item.
struct RowWindows {
  Index rows;
  Index3 window;  ///< Its size, in positions.
  Index front;    ///< Rows of the source before that of a window, which it begins with.
  Index3 source;  ///< The size of the planes that are summed.
  std::size_t slot;
  bool with_ntk, unrolled;
  std::string across;   ///< Declares from0, to0, from2 and to2, as every row has them.
  std::string along;    ///< Declares from1 and to1 of row y.
  std::string has_row;  ///< Whether the plane has row y.
};

/// Declares window_k[row] and window_t[row], the sums of the windows. An entry that several of them see is read once,
/// and every sum has the order of a loop over its window.
[[nodiscard]] std::string windows_of_rows(const RowWindows& of);

}  // namespace widelimit
