#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/results/table.hpp"

/// Taking texts and option values apart.
namespace widelimit::cli {

using results::csv_field;
using results::csv_quoted;

/// Characters of a text in UTF-8, whose bytes 10xxxxxx go on with one.
[[nodiscard]] std::size_t letter_count(std::string_view text);

/// The parts of a text between separators; at least one.
[[nodiscard]] std::vector<std::string> split(const std::string& text, char separator);

/// The number that all entries are, formatted by `one`, or the smallest and the largest by `two`.
[[nodiscard]] std::string shared_or_range(const Vector<double>& numbers, const char* one, const char* two);

/// A mean squared error with five digits behind the point, or of any size with six in all.
[[nodiscard]] std::string squared_error_text(double error);

/// The number that the whole text is, as std::from_chars reads it ("inf" and "nan" as well); nothing where something
/// else stands before it, after it or in its place.
[[nodiscard]] std::optional<double> whole_text_number(std::string_view text);

/// The two integers that the whole text is, with the separator between them; nothing where it is something else.
[[nodiscard]] std::optional<std::pair<Index, Index>> two_integers(std::string_view text, char separator);

/// A word that an option takes, and what it means; empty if that is not said.
struct DescribedChoice {
  std::string word;
  std::string meaning;
};

/// Those of "WORD: meaning; WORD: meaning"; a sentence may stand before them, and [a default] after them.
[[nodiscard]] std::vector<DescribedChoice> described_choices(const std::string& description);

}  // namespace widelimit::cli
