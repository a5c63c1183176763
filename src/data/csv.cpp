#include "widelimit/data/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <set>

#include "data/text_source.hpp"
#include "text/utf8.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::data {
namespace {

std::string separator_name(char separator) {
  if (separator == ',') return "comma";
  if (separator == ';') return "semicolon";
  if (separator == '\t') return "tab";
  return separator == ' ' ? "blank" : fmt::format("'{}'", separator);
}

/// Takes a text apart, row by row.
class CsvParser {
 public:
  /// The text begins after `mark_bytes` of the file.
  CsvParser(const std::filesystem::path& path, std::string_view text, std::size_t mark_bytes)
      : path_{path}, text_{text} {
    if (const std::size_t zero = text_.find('\0'); zero != std::string_view::npos)
      fail(line_of(zero), fmt::format("expected text, found {}", zero_byte_found));
    // The offset counts from the beginning of the file, a byte order mark included.
    if (const auto invalid = first_invalid_utf8(text_))
      fail(line_of(*invalid),
           fmt::format("expected UTF-8, found {} at offset {} of the file; convert the file",
                       byte_text(text_[*invalid]), *invalid + mark_bytes));
  }

  void set_separator(char separator) { separator_ = separator; }

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  /// Passes over lines that begin with #.
  void skip_comments() {
    while (!at_end() && text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
      ++line_;
    }
  }

  /// Passes over lines of nothing but blanks.
  void skip_blank_lines() {
    while (!at_end()) {
      const std::size_t end = text_.find_first_not_of(separator_ == '\t' ? " " : " \t", at_);
      const std::string_view rest = text_.substr(std::min(end, text_.size()));
      if (!rest.empty() && !rest.starts_with('\n') && !rest.starts_with("\r\n")) return;
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
      ++line_;
    }
  }

  /// Passes over a line "sep=;", by which a table tells Excel what separates its fields, and returns the separator.
  std::optional<char> take_separator_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.size() > 1 && line.starts_with('"') && line.ends_with('"'))
      line = line.substr(1, line.size() - 2);
    const std::string_view name = line.substr(0, 4);
    if (name != "sep=" && name != "SEP=" && name != "Sep=") return {};
    if (line.size() != name.size() + 1 || line.back() == '"')
      fail(line_,
           fmt::format(
               "expected one character that separates fields after '{}', as Excel reads it, found '{}'", name,
               line.substr(name.size())));
    at_ = std::min(end + 1, text_.size());
    ++line_;
    return line.back();
  }

  /// The header, the line at hand, as it is written: it may reach over several lines of a quoted name.
  [[nodiscard]] std::string_view header() const {
    bool quoted = false;
    for (std::size_t i = at_; i < text_.size(); ++i) {
      if (text_[i] == '"') quoted = !quoted;
      if (text_[i] == '\n' && !quoted) return text_.substr(at_, i - at_);
    }
    return text_.substr(at_);
  }

  /// A row has at least one field: an empty line is a row with one empty field.
  std::vector<std::string> row() {
    // Fields take many times the memory of their text.
    constexpr std::size_t most_fields = 10'000'000;
    std::vector<std::string> fields{field()};
    while (take(separator_)) {
      if (fields.size() == most_fields)
        fail(line_, fmt::format("expected at most {} fields, found more", most_fields));
      fields.push_back(field());
    }
    take('\r');
    if (!take('\n') && !at_end()) fail(line_, "found a carriage return within a line");
    ++line_;
    return fields;
  }

  [[noreturn]] void fail(std::size_t line, const std::string& message) const {
    throw DataError(fmt::format("{}: line {}: {}", path_.string(), line, message));
  }

 private:
  [[nodiscard]] std::size_t line_of(std::size_t offset) const {
    const auto before = text_.substr(0, offset);
    return 1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  }

  bool take(char c) {
    const bool found = !at_end() && text_[at_] == c;
    if (found) ++at_;
    return found;
  }

  std::string field() {
    constexpr std::size_t longest_field = std::size_t{1} << 20;
    std::string field = take('"') ? quoted() : plain();
    if (field.size() > longest_field)
      fail(line_, fmt::format("expected fields of at most {} bytes, found {}", longest_field, field.size()));
    return field;
  }

  std::string plain() {
    const std::size_t end =
        std::min(text_.find_first_of(std::string{separator_, '\r', '\n', '"'}, at_), text_.size());
    if (end < text_.size() && text_[end] == '"')
      fail(line_, "found a quote within a field; fields with quotes are put in quotes, each doubled");
    std::string field(text_.substr(at_, end - at_));
    at_ = end;
    return field;
  }

  std::string quoted() {
    const std::size_t begin_line = line_;
    std::string field;
    while (true) {
      const std::size_t end = text_.find('"', at_);
      if (end == std::string_view::npos)
        fail(begin_line, "expected a closing quote, found the end of the file");
      const std::string_view piece = text_.substr(at_, end - at_);
      line_ += static_cast<std::size_t>(std::count(piece.begin(), piece.end(), '\n'));
      field += piece;
      at_ = end + 1;
      // Two quotes stand for one within the field; a single one ends it.
      if (!take('"')) break;
      field += '"';
    }
    if (!at_end() && text_[at_] != separator_ && text_[at_] != '\r' && text_[at_] != '\n')
      fail(line_, fmt::format("expected a {} or the end of the line after a closing quote",
                              separator_name(separator_)));
    return field;
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  char separator_ = ',';
};

/// The separator that a header has. Names in quotes may hold any.
char found_separator(const CsvParser& parser) {
  std::string bare;
  bool quoted = false, has_quotes = false;
  for (const char c : parser.header()) {
    if (c == '"') {
      quoted = !quoted;
      has_quotes = true;
    } else if (!quoted && c != '\r') {
      bare += c;
    }
  }
  std::string found;
  for (const char separator : {',', ';', '\t'})
    if (bare.find(separator) != std::string::npos) found += separator;
  if (found.size() > 1)
    parser.fail(
        parser.line(),
        fmt::format(
            "found both {}s and {}s in the header: say which separates fields (--separator), or put names "
            "that hold the other in quotes",
            separator_name(found[0]), separator_name(found[1])));
  if (!found.empty()) return found[0];
  // R's write.table() puts all names in quotes, and blanks between them.
  const bool blanks = has_quotes && !bare.empty() && bare.find_first_not_of(' ') == std::string::npos;
  return blanks ? ' ' : ',';
}

void check_header(const CsvParser& parser, std::size_t line, const std::vector<std::string>& columns) {
  std::set<std::string> seen;
  for (const std::string& name : columns) {
    if (name.empty()) parser.fail(line, "expected names of columns, found an empty one");
    if (!seen.insert(name).second) parser.fail(line, fmt::format("found the column name '{}' twice", name));
  }
}

/// An empty name of the first of several columns becomes that of names of rows.
void name_first_column(CsvTable& table) {
  table.has_row_names = table.columns.size() > 1 && table.columns[0].empty();
  if (table.has_row_names) table.columns[0] = CsvTable::row_names;
}

/// A first row with one field more than the header has names of rows, which is said; one that ends with a separator has
/// not.
bool take_short_header(CsvTable& table) {
  if (table.has_row_names || table.rows[0].size() != table.columns.size() + 1 || table.rows[0].back().empty())
    return false;
  table.columns.insert(table.columns.begin(), std::string(CsvTable::row_names));
  table.has_row_names = true;
  return true;
}

void check_width(const CsvParser& parser, const CsvTable& table, bool header_is_short) {
  if (table.rows.back().size() != table.columns.size())
    parser.fail(table.lines.back(),
                fmt::format("expected {} fields as in the {}, found {}", table.columns.size(),
                            header_is_short ? "first row" : "header", table.rows.back().size()));
}

/// Names that stand twice are none: it may be that commas of numbers were taken for separators.
void check_row_names(const CsvParser& parser, const CsvTable& table) {
  std::set<std::string_view> seen;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    if (!seen.insert(table.rows[row][0]).second)
      parser.fail(
          table.lines[row],
          fmt::format(
              "expected {} fields as in the header, found {}; the first fields of the rows are no names "
              "of rows, as '{}' stands twice; do numbers have decimal commas?",
              table.columns.size() - 1, table.columns.size(), table.rows[row][0]));
}

/// What separates the fields: what the caller says, a line "sep=;" or the header.
char separator_of(CsvParser& parser, const CsvFormat& format) {
  const std::size_t line = parser.line();
  const auto said = parser.take_separator_line();
  if (said && format.separator && *said != *format.separator)
    parser.fail(line, fmt::format("says that each {} separates fields, --separator that each {} does",
                                  separator_name(*said), separator_name(*format.separator)));
  if (said) return *said;
  return format.separator ? *format.separator : found_separator(parser);
}

/// Fields take many times the memory of their text; asked when rows are one, two, four ...
void require_memory_for_rows(const std::filesystem::path& path, const CsvTable& table) {
  const std::size_t rows = table.rows.size();
  if ((rows & (rows - 1)) != 0) return;
  numerics::require_memory(
      path.string(), fmt::format("a table of {} rows or more", rows),
      2.0 * static_cast<double>(rows * (sizeof(table.rows[0]) + table.columns.size() * sizeof(std::string))),
      "is it the right file?");
}

}  // namespace

std::size_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end())
    throw ArgumentError(fmt::format("there is no column '{}'; there are {}", name, fmt::join(columns, ", ")));
  return static_cast<std::size_t>(found - columns.begin());
}

CsvTable read_csv(const std::filesystem::path& path, const CsvFormat& format) {
  TextSource source(path, TextContent::lines);
  const std::string text = source.all(std::numeric_limits<std::uint64_t>::max(), "a table");
  CsvParser parser(path, text, source.mark_bytes());
  const auto skip = [&](bool blank_lines) {
    for (std::size_t line = 0; line != parser.line();) {
      line = parser.line();
      if (format.comments == CsvComments::hash_lines) parser.skip_comments();
      if (blank_lines) parser.skip_blank_lines();
    }
  };
  skip(true);
  CsvTable table;
  table.separator = separator_of(parser, format);
  parser.set_separator(table.separator);
  skip(true);
  if (parser.at_end()) parser.fail(parser.line(), "expected names of columns, found nothing");
  const std::size_t header_line = parser.line();
  table.columns = parser.row();
  name_first_column(table);
  check_header(parser, header_line, table.columns);
  bool header_is_short = false;
  for (skip(table.columns.size() > 1); !parser.at_end(); skip(table.columns.size() > 1)) {
    table.lines.push_back(parser.line());
    table.rows.push_back(parser.row());
    require_memory_for_rows(path, table);
    if (table.rows.size() == 1) header_is_short = take_short_header(table);
    check_width(parser, table, header_is_short);
  }
  if (header_is_short) {
    check_header(parser, header_line, table.columns);
    check_row_names(parser, table);
  }
  return table;
}

}  // namespace widelimit::data
