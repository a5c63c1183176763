#include "cli/tasks/column_texts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <set>
#include <string_view>

#include "cli/tasks/table_encoding.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/shown_text.hpp"

namespace widelimit::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string without_blanks_around(const std::string& field) {
  const std::size_t begin = field.find_first_not_of(" \t");
  if (begin == std::string::npos) return "";
  return field.substr(begin, field.find_last_not_of(" \t") + 1 - begin);
}

/// The text at the beginning of another; empty if none of them stands there.
template <std::size_t Count>
std::string_view taken(std::string_view text, const std::array<std::string_view, Count>& candidates) {
  for (const std::string_view candidate : candidates)
    if (text.starts_with(candidate)) return candidate;
  return {};
}

constexpr std::array<std::string_view, 5> currencies{"$", "\xe2\x82\xac", "\xc2\xa3", "\xc2\xa5",
                                                     "\xe2\x82\xb9"};
/// What stands within numbers: point, comma, apostrophes, and blanks that are broken, unbroken and narrow.
constexpr std::array<std::string_view, 7> marks_in_numbers{".", ",",        "'",           "\xe2\x80\x99",
                                                           " ", "\xc2\xa0", "\xe2\x80\xaf"};
constexpr std::array<std::string_view, 3> signs{"-", "+", "\xe2\x88\x92"};

/// A number in some notation, taken apart.
struct WrittenNumber {
  std::string before, after;            ///< A currency, a unit; with their blanks.
  std::vector<std::string_view> marks;  ///< Between the digits.
  std::vector<std::size_t> digits;      ///< How many stand before, between and after the marks.
};

/// Reads a field; the number has no digits where it is none.
WrittenNumber written_number(std::string_view text) {
  WrittenNumber number;
  text.remove_prefix(taken(text, signs).size());
  const std::string_view currency = taken(text, currencies);
  number.before = currency;
  text.remove_prefix(currency.size());
  while (!number.before.empty() && text.starts_with(' ')) {
    number.before += ' ';
    text.remove_prefix(1);
  }
  text.remove_prefix(taken(text, signs).size());
  while (!text.empty() && is_digit(text[0])) {
    const auto count = static_cast<std::size_t>(std::ranges::find_if_not(text, is_digit) - text.begin());
    number.digits.push_back(count);
    text.remove_prefix(count);
    const std::string_view mark = taken(text, marks_in_numbers);
    if (mark.empty() || text.size() == mark.size() || !is_digit(text[mark.size()])) break;
    number.marks.push_back(mark);
    text.remove_prefix(mark.size());
  }
  number.after = text;
  if (std::ranges::any_of(text, is_digit)) number.digits.clear();
  return number;
}

/// What the numbers of a column have in common.
class Notation {
 public:
  explicit Notation(const data::NumberFormat& format) : comma_is_decimal_{format.decimal == ','} {}

  /// Whether the number can be one of these.
  bool add(const WrittenNumber& number) {
    if (number.digits.empty()) return false;
    if (!number.before.empty()) around_.insert(number.before);
    if (!number.after.empty()) around_.insert(number.after);
    befores_ += number.before.empty() ? 0 : 1;
    const std::size_t count = number.marks.size();
    for (std::size_t k = 0; k < count; ++k) {
      const std::string_view mark = number.marks[k];
      const bool last = k + 1 == count, other = std::ranges::count(number.marks, mark) == 1;
      const bool group = number.digits[k + 1] == 3 && number.digits[0] <= 3;
      if (mark != "." && mark != ",") {
        if (!group) return false;
        groups_.insert(mark);
      } else if (last && other && (count > 1 || !group)) {
        decimals_.insert(mark);
      } else if (!group) {
        return false;
      } else {
        (last && other && count == 1 ? either_ : groups_).insert(mark);
      }
    }
    return true;
  }

  /// Empty where nothing is to be done.
  [[nodiscard]] std::string remedy() const {
    std::set<std::string_view> either = either_, groups = groups_;
    const bool contradicts =
        decimals_.size() > 1 || (!decimals_.empty() && groups.contains(*decimals_.begin()));
    // The unit and the currency: more than one of each are the names of things.
    if (contradicts || around_.size() > (befores_ > 0 ? 2U : 1U)) return "";
    for (const std::string_view mark : either_)
      if (decimals_.contains(mark) || groups.contains(mark)) either.erase(mark);
    std::string text;
    const auto add = [&](const std::string& option) { text += (text.empty() ? "" : " ") + option; };
    if (decimals_.contains(",") && !comma_is_decimal_) add("--decimal ,");
    const bool point_groups = comma_is_decimal_ || decimals_.contains(",");
    for (const std::string_view mark : groups) add(fmt::format("--strip '{}'", mark));
    for (const std::string_view mark : either)
      if (mark == "." && point_groups)
        add("--strip .");
      else if (mark == "," && decimals_.contains("."))
        add("--strip ,");
      else if (mark == "," && !comma_is_decimal_)
        add("--decimal , (if the commas are decimal points) or --strip , (if they group thousands)");
    for (const std::string& unit : around_) add(fmt::format("--strip '{}'", unit));
    return text;
  }

 private:
  bool comma_is_decimal_;
  std::size_t befores_ = 0;
  std::set<std::string> around_;
  /// Marks that end in fractions, that group thousands, and that may be either of both.
  std::set<std::string_view> decimals_, groups_, either_;
};

}  // namespace

bool is_blank(const std::string& field) { return field.find_first_not_of(" \t") == std::string::npos; }

bool is_word_of_missing(const std::string& field) {
  std::string word = without_blanks_around(field);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  constexpr std::array words{"na", "n/a", "nan", "null", "?"};
  return std::ranges::find(words, word) != words.end();
}

std::optional<bool> truth_value(const std::string& field) {
  std::string word = without_blanks_around(field);
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word == "true") return true;
  return word == "false" ? std::optional(false) : std::nullopt;
}

std::string remedy_of_numbers(const std::vector<std::string>& fields, const data::NumberFormat& format) {
  Notation notation(format);
  bool some = false;
  for (const std::string& field : fields) {
    if (is_blank(field) || is_word_of_missing(field) || format.number_in(field)) continue;
    some = true;
    if (!notation.add(written_number(without_blanks_around(field)))) return "";
  }
  return some ? notation.remedy() : "";
}

bool are_dates(const std::vector<std::string>& fields) {
  static const std::regex date(
      R"(\s*(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}\S*)?\s*)");
  bool some = false;
  for (const std::string& field : fields) {
    if (is_blank(field) || is_word_of_missing(field)) continue;
    if (field.size() > 64 || !std::regex_match(field, date)) return false;
    some = true;
  }
  return some;
}

std::string beyond_double_text(const std::string& field) {
  return fmt::format(
      "the number '{}' is outside of double, which holds 0 and sizes from 4.9e-324 to 1.8e308; give the "
      "column in other "
      "units",
      cut_text(field));
}

const char* missing_cells_name(MissingCells choice) {
  switch (choice) {
    case MissingCells::error:
      return "error";
    case MissingCells::mean:
      return "mean";
    case MissingCells::column:
      return "column";
  }
  return "";
}

MissingCells missing_cells_of(const std::string& word, const std::string& where) {
  for (const MissingCells choice : {MissingCells::error, MissingCells::mean, MissingCells::column})
    if (word == missing_cells_name(choice)) return choice;
  throw DataError(fmt::format("{}: expected error, mean or column, found '{}'", where, cut_text(word)));
}

UnknownInputs unknown_inputs_of(const std::string& word, const std::string& where) {
  if (word == "error") return UnknownInputs::error;
  if (word == "ignore") return UnknownInputs::ignore;
  throw DataError(fmt::format("{}: expected error or ignore, found '{}'", where, cut_text(word)));
}

}  // namespace widelimit::cli
