#include "cli/options/similar_name.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <numeric>

namespace widelimit::cli {
namespace {

std::string letters_of(const std::string& name) {
  std::string letters;
  for (const char c : name)
    if (c != '_' && c != '-' && c != ' ')
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

/// Levenshtein's distance.
std::size_t edits_between(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> similar_name(const std::string& name, const std::vector<std::string>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return std::nullopt;
  std::optional<std::string> closest;
  std::size_t fewest = 3;
  for (const std::string& one : known) {
    const std::string letters = letters_of(one);
    const std::size_t edits = edits_between(letters_of(name), letters);
    if (edits >= fewest || edits > (letters.size() > 5 ? 2u : 1u)) continue;
    fewest = edits;
    closest = one;
  }
  return closest;
}

}  // namespace widelimit::cli
