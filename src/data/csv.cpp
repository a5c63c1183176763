#include "widelimit/data/csv.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <set>

#include "data/input_file.hpp"
#include "text/utf8.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

/// Takes a text apart, row by row.
class CsvParser {
 public:
  CsvParser(const std::filesystem::path& path, std::string_view text) : path_{path}, text_{text} {
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text_.starts_with(byte_order_mark)) text_.remove_prefix(byte_order_mark.size());
    if (const std::size_t zero = text_.find('\0'); zero != std::string_view::npos)
      fail(line_of(zero), "expected text, found a zero byte");
    // The offset counts from the beginning of the file, a byte order mark included.
    if (const auto invalid = first_invalid_utf8(text_))
      fail(line_of(*invalid),
           fmt::format("expected UTF-8, found {} at offset {} of the file; convert the file",
                       byte_text(text_[*invalid]), *invalid + text.size() - text_.size()));
  }

  [[nodiscard]] bool at_end() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t line() const { return line_; }

  /// Passes over lines that begin with #.
  void skip_comments() {
    while (!at_end() && text_[at_] == '#') {
      at_ = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
      ++line_;
    }
  }

  /// A row has at least one field: an empty line is a row with one empty field.
  std::vector<std::string> row() {
    std::vector<std::string> fields{field()};
    while (take(',')) fields.push_back(field());
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
    const std::size_t end = std::min(text_.find_first_of(",\r\n\"", at_), text_.size());
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
    if (!at_end() && std::string_view(",\r\n").find(text_[at_]) == std::string_view::npos)
      fail(line_, "expected a comma or the end of the line after a closing quote");
    return field;
  }

  const std::filesystem::path& path_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

void check_header(const CsvParser& parser, std::size_t line, const std::vector<std::string>& columns) {
  std::set<std::string> seen;
  for (const std::string& name : columns) {
    if (name.empty()) parser.fail(line, "expected names of columns, found an empty one");
    if (!seen.insert(name).second) parser.fail(line, fmt::format("found the column name '{}' twice", name));
  }
  // A file with another separator would be read as a table of one column.
  if (columns.size() == 1 && columns[0].find_first_of(";\t") != std::string::npos)
    parser.fail(line, "expected fields separated by commas, found semicolons or tabs");
}

}  // namespace

std::size_t CsvTable::column(std::string_view name) const {
  const auto found = std::find(columns.begin(), columns.end(), name);
  if (found == columns.end())
    throw ArgumentError(fmt::format("there is no column '{}'; there are {}", name, fmt::join(columns, ", ")));
  return static_cast<std::size_t>(found - columns.begin());
}

std::optional<double> number_in_field(const std::string& field) {
  const std::size_t begin = field.find_first_not_of(" \t");
  if (begin == std::string::npos) return std::nullopt;
  const char* first = field.data() + begin;
  const char* last = field.data() + field.find_last_not_of(" \t") + 1;
  // std::from_chars() takes no plus sign.
  if (*first == '+' && last - first > 1 && first[1] != '-') ++first;
  double value = 0;
  const auto [stop, error] = std::from_chars(first, last, value);
  if (error != std::errc{} || stop != last) return std::nullopt;
  return value;
}

CsvTable read_csv(const std::filesystem::path& path, CsvComments comments) {
  const std::vector<std::uint8_t> bytes = InputFile(path).read_all();
  CsvParser parser(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  const auto skip = [&] {
    if (comments == CsvComments::hash_lines) parser.skip_comments();
  };
  skip();
  if (parser.at_end()) parser.fail(parser.line(), "expected names of columns, found nothing");
  CsvTable table;
  const std::size_t header_line = parser.line();
  table.columns = parser.row();
  check_header(parser, header_line, table.columns);
  for (skip(); !parser.at_end(); skip()) {
    table.lines.push_back(parser.line());
    table.rows.push_back(parser.row());
    if (table.rows.back().size() != table.columns.size())
      parser.fail(table.lines.back(), fmt::format("expected {} fields as in the header, found {}",
                                                  table.columns.size(), table.rows.back().size()));
  }
  return table;
}

}  // namespace widelimit::data
