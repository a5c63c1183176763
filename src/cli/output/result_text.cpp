#include "cli/output/result_text.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {
namespace {

using Results = nlohmann::ordered_json;

constexpr std::size_t longest_list = 60;

bool json_was_asked_for = false;

std::string scalar_text(const Results& value) {
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  if (value.is_string()) return visible_text(value.get<std::string>());
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  return value.is_null() ? "-" : value.dump();
}

/// "0.5, 1, 2"; of matrices rows in brackets.
std::string list_text(const Results& list) {
  std::string text;
  for (const Results& entry : list)
    text +=
        (text.empty() ? "" : ", ") + (entry.is_array() ? "[" + list_text(entry) + "]" : scalar_text(entry));
  return text;
}

std::string value_text(const Results& value) {
  if (!value.is_array()) return scalar_text(value);
  if (value.empty()) return "none";
  const std::string text = list_text(value);
  if (text.size() <= longest_list) return text;
  const Results& first = value.front();
  return first.is_array() ? fmt::format("{} x {} numbers", value.size(), first.size())
                          : fmt::format("{} values", value.size());
}

bool is_table(const Results& value) {
  return value.is_array() && !value.empty() &&
         std::all_of(value.begin(), value.end(), [](const Results& row) { return row.is_object(); });
}

/// The columns of all rows, in their order, but for further tables.
std::string table_text(const Results& rows) {
  std::vector<std::string> names;
  for (const Results& row : rows)
    for (const auto& [name, value] : row.items())
      if (!is_table(value) && std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::vector<std::string> lines(rows.size() + 1);
  for (const std::string& name : names) {
    std::vector<std::string> cells{visible_text(name)};
    for (const Results& row : rows) {
      const Results value = row.value(name, Results());
      cells.push_back(value.is_object() ? list_text(value) : value_text(value));
    }
    const std::size_t width = std::ranges::max(cells, {}, &std::string::size).size();
    for (std::size_t i = 0; i < cells.size(); ++i) lines[i] += fmt::format("  {:>{}}", cells[i], width);
  }
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Lines of names and values; a table stands on lines of its own, below its name.
void collect(std::vector<std::pair<std::string, std::string>>& lines, const std::string& name,
             const Results& value) {
  if (value.is_object()) {
    for (const auto& [field, below] : value.items())
      collect(lines, name.empty() ? visible_text(field) : name + "." + visible_text(field), below);
  } else if (is_table(value)) {
    lines.emplace_back(name, "\n" + table_text(value));
  } else {
    lines.emplace_back(name, value_text(value));
  }
}

}  // namespace

std::string result_text(const Results& result) {
  std::vector<std::pair<std::string, std::string>> lines;
  collect(lines, "", result);
  std::size_t width = 28;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : lines)
    text += value.starts_with('\n') ? (name.empty() ? value.substr(1) : name + value)
                                    : fmt::format("{:<{}} {}\n", name, width, value);
  return text;
}

void print_text(std::FILE* file, std::string_view text) {
  const std::string visible = visible_lines(text);
  std::fwrite(visible.data(), 1, visible.size(), file);
}

void print_document(std::string_view document) {
  const std::string visible = visible_json(document);
  std::fwrite(visible.data(), 1, visible.size(), stdout);
}

void print_notice(std::string_view line) { print_text(stderr, visible_text(line) + "\n"); }

void add_json_option(CLI::App& command) {
  command.add_flag_callback(
      "--json", [] { json_was_asked_for = true; }, "Print the results alone, as JSON");
}

bool prints_json() { return json_was_asked_for; }

void print_result(const Results& result) {
  if (prints_json())
    print_document(result.dump() + "\n");
  else
    print_text(stdout, result_text(result));
}

void print_csv(const std::string& csv) {
  if (!prints_json()) return say("{}", csv);
  Results table{{"columns", Results::array()}, {"rows", Results::array()}};
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  for (const std::string& name : split(line, ',')) table["columns"].push_back(name);
  while (std::getline(lines, line)) {
    Results row = Results::array();
    for (const std::string& cell : split(line, ',')) {
      const auto number = whole_text_number(cell);
      row.push_back(number && std::isfinite(*number) ? Results(*number)
                    : cell.empty()                   ? Results()
                                                     : Results(cell));
    }
    table["rows"].push_back(std::move(row));
  }
  print_result(table);
}

void flush_standard_output() {
  errno = 0;
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout) return;
  // Where an earlier call met the error, errno no longer says why.
  const int reason = errno;
  throw Error(fmt::format("standard output cannot be written{}{}", reason == 0 ? "" : ": ",
                          reason == 0 ? "" : std::generic_category().message(reason)));
}

}  // namespace widelimit::cli
