#include "kernel/backends/device/row_windows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/backends/device/chain_text.hpp"

namespace widelimit {
namespace {

/// Adds one row of the source to those of the windows `first` to `last` that see it.
std::string added_row(const RowWindows& of, const std::string& place, Index first, Index last) {
  std::string sees, any, added;
  for (Index row = first; row <= last; ++row) {
    sees += fmt::format("const int sees{0} = j >= first{0} && j < last{0};\n", row);
    any += fmt::format("{}sees{}", any.empty() ? "" : " || ", row);
    added += fmt::format("if (sees{0}) {{ window_k[{0}] += seen_k;{1} }}\n", row,
                         of.with_ntk ? fmt::format(" window_t[{}] += seen_t;", row) : "");
  }
  return fmt::format(
      "{{ const int j = {};\n{}if ({})\nfor (int m = from2; m < to2; ++m) {{\n"
      "const int b = (i * {} + j) * {} + m;\nconst real seen_k = slot_k{}[b];\n{}{}}}}}\n",
      place, sees, any, of.source[1], of.source[2], of.slot,
      of.with_ntk ? fmt::format("const real seen_t = slot_t{}[b];\n", of.slot) : "", added);
}

/// The rows of the source that each window sees; none of a row that the plane does not have.
std::string seen_rows(const RowWindows& of) {
  std::string text;
  for (Index row = 0; row < of.rows; ++row)
    text += fmt::format(
        "int first{0} = 0, last{0} = 0;\n{{ const int y = y0 + {0};\nif ({1}) {{\n{2}"
        "first{0} = from1; last{0} = to1; }}}}\n",
        row, of.has_row, of.along);
  return text;
}

}  // namespace

bool has_equal_rows(const Chain& chain, const PairGeometry& geometry, const ChainGeometry& of_chain) {
  const Index3 &left = geometry.left_sizes[chain.root], &right = geometry.right_sizes[chain.root];
  for (std::size_t i = 0; i < chain.instructions.size(); ++i) {
    const NodeId node = chain.instructions[i].node;
    if (geometry.left_sizes[node] != left || geometry.right_sizes[node] != right ||
        !(of_chain.maps[i] == of_chain.maps.front()))
      return false;
  }
  return left[1] > 1;
}

std::string windows_of_rows(const RowWindows& of) {
  std::string text =
      fmt::format("real window_k[{0}]{1};\nfor (int row = 0; row < {0}; ++row) window_k[row] = 0{2};\n{{\n",
                  of.rows, of.with_ntk ? fmt::format(", window_t[{}]", of.rows) : "",
                  of.with_ntk ? ", window_t[row] = 0" : "") +
      of.across + seen_rows(of) + "for (int i = from0; i < to0; ++i) {\n";
  const Index below = of.window[1] - 1;
  if (of.unrolled && product(of.window) <= most_unrolled) {
    for (Index row = 0; row < of.rows + below; ++row)
      text += added_row(of, fmt::format("y0 + {}", row - of.front), std::max<Index>(0, row - below),
                        std::min(row, of.rows - 1));
  } else {
    text += fmt::format("for (int j0 = y0 - {}; j0 < y0 + {}; ++j0)\n", of.front, of.rows + below - of.front);
    text += added_row(of, "j0", 0, of.rows - 1);
  }
  return text + "}}\n";
}

}  // namespace widelimit
