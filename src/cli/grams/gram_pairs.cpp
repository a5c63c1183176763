#include "cli/grams/gram_pairs.hpp"

#include "cli/output/text_parts.hpp"

namespace widelimit::cli {

std::vector<std::pair<Index, Index>> read_pairs(const std::vector<std::string>& texts) {
  std::vector<std::pair<Index, Index>> pairs;
  for (const std::string& text : texts) {
    const auto pair = two_integers(text, ',');
    if (!pair) throw ArgumentError(fmt::format("--pairs: expected two inputs I,J, got {}", text));
    pairs.push_back(*pair);
  }
  return pairs;
}

}  // namespace widelimit::cli
