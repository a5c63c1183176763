#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "cli/program/run_context.hpp"
#include "cli/report/html.hpp"
#include "memory_file.hpp"
#include "targets.hpp"
#include "widelimit/data/csv.hpp"
#include "widelimit/results/picture.hpp"
#include "widelimit/results/table.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::fuzz {
namespace {

void expect(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

/// UTF-8 without control characters, the two that lay out lines aside.
void expect_visible(const std::string& text, const char* what) {
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  for (const char c : text) expect(!is_control(c) || c == '\n' || c == '\t', what);
  expect(!first_invalid_utf8(text), what);
}

/// What gnuplot makes of a string in double quotes: letters that mean nothing to it, and octal escapes of three digits,
/// after which no digit may follow that some versions would read as a fourth.
std::string read_by_gnuplot(const std::string& quoted) {
  expect(quoted.size() >= 2 && quoted.front() == '"' && quoted.back() == '"', "gnuplot: quotes");
  const std::string inner = quoted.substr(1, quoted.size() - 2);
  std::string text;
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (inner[i] != '\\') {
      expect(std::isalnum(static_cast<unsigned char>(inner[i])) != 0 ||
                 std::string_view(" .,:;()=+-/_").find(inner[i]) != std::string_view::npos,
             "gnuplot: a letter that it obeys");
      text += inner[i];
      continue;
    }
    const std::string digits = inner.substr(i + 1, 3);
    expect(digits.size() == 3 && digits.find_first_not_of("01234567") == std::string::npos,
           "gnuplot: octal digits");
    text += static_cast<char>(std::stoi(digits, nullptr, 8));
    i += 3;
    expect(i + 1 == inner.size() || std::isdigit(static_cast<unsigned char>(inner[i + 1])) == 0,
           "gnuplot: a fourth digit");
  }
  return text;
}

std::string read_by_browser(std::string html) {
  expect(html.find_first_of("<>\"'") == std::string::npos, "HTML: a letter that browsers obey");
  // The ampersand last, or "&amp;lt;" would become "<".
  constexpr std::array entities{std::pair("&lt;", "<"), std::pair("&gt;", ">"), std::pair("&quot;", "\""),
                                std::pair("&#39;", "'"), std::pair("&amp;", "&")};
  for (const auto& [entity, letter] : entities)
    for (std::size_t at = html.find(entity); at != std::string::npos; at = html.find(entity, at + 1))
      html.replace(at, std::string_view(entity).size(), letter);
  return html;
}

void check_csv(const std::string& field, const std::string& visible) {
  expect(field.find_first_of("\n\r") == std::string::npos, "CSV: one line a row");
  const std::string table = "column\n" + field + "\n";
  const MemoryFile file({reinterpret_cast<const std::uint8_t*>(table.data()), table.size()});
  const std::string read = data::read_csv(file.path()).rows.at(0).at(0);
  expect(read == visible || read == "'" + visible, "CSV: the same text");
  expect(read.empty() || std::string_view("=+-@").find(read[0]) == std::string_view::npos ||
             data::number_in_field(read).has_value(),
         "CSV: a formula");
}

}  // namespace

void shown_text(Bytes bytes) {
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string visible = visible_text(text), lines = visible_lines(text);
  expect_visible(visible, "a visible text");
  expect(visible.find_first_of("\n\t") == std::string::npos, "a visible text is one line");
  expect(visible_text(visible) == visible, "a visible text stays as it is");
  expect_visible(lines, "visible lines");

  expect(read_by_gnuplot(results::gnuplot_quoted(text)) == visible, "gnuplot: the same text");
  const std::string html = cli::html_escaped(text);
  expect_visible(html, "HTML");
  expect(read_by_browser(html) == lines, "HTML: the same text");
  check_csv(results::csv_field(text), visible);
  check_csv(results::csv_quoted(text), visible);

  const std::string command = cli::shell_command_line({"program", text, text + "7"});
  expect(visible_text(command) == command, "a command is one visible line");
  expect(cli::shell_words(command) == std::vector<std::string>{"program", text, text + "7"},
         "shell: the same words");
  static_cast<void>(cli::shell_words(text));

  if (first_invalid_utf8(text)) return;
  const nlohmann::json document{{text, text}};
  const std::string json = visible_json(document.dump(1));
  expect_visible(json, "JSON");
  expect(nlohmann::json::parse(json) == document, "JSON: the same document");
}

}  // namespace widelimit::fuzz
