#include "cli/gram_pairs.hpp"

#include <charconv>

namespace widelimit::cli {

std::vector<std::pair<Index, Index>> read_pairs(const std::vector<std::string>& texts) {
  std::vector<std::pair<Index, Index>> pairs;
  for (const std::string& text : texts) {
    const char* const end = text.data() + text.size();
    Index i = 0, j = 0;
    const auto first = std::from_chars(text.data(), end, i);
    const bool comma = first.ec == std::errc{} && first.ptr != end && *first.ptr == ',';
    const auto second = comma ? std::from_chars(first.ptr + 1, end, j) : first;
    if (!comma || second.ec != std::errc{} || second.ptr != end)
      throw ArgumentError(fmt::format("--pairs: expected two inputs I,J, got {}", text));
    pairs.emplace_back(i, j);
  }
  return pairs;
}

}  // namespace widelimit::cli
