#include "json/nearest_word.hpp"

#include <algorithm>
#include <numeric>

namespace widelimit {
namespace {

/// Levenshtein's distance.
std::size_t letters_between(std::string_view left, std::string_view right) {
  // row[j]: from the letters of `left` so far to the first j of `right`.
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t replaced = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_word(std::string_view given, const std::vector<std::string>& words) {
  constexpr std::size_t longest = 64;
  if (given.size() > longest) return {};
  std::string nearest;
  std::size_t least = given.size() / 3 + 1;
  for (const std::string& word : words)
    if (const std::size_t letters = letters_between(given, word); letters < least) {
      least = letters;
      nearest = word;
    }
  return nearest;
}

}  // namespace widelimit
