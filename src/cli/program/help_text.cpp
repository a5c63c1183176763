#include "cli/program/help_text.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/output/terminal_columns.hpp"
#include "cli/output/text_parts.hpp"

namespace widelimit::cli {
namespace {

constexpr std::size_t narrowest = 40, description_column = 30;

class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    const auto choices = described_choices(text);
    if (choices.size() < 3) return text;
    for (const DescribedChoice& choice : choices)
      for (const char* before : {"; ", ". "})
        if (const auto place = text.find(before + choice.word + ": "); place != std::string::npos)
          text.replace(place, 2, *before == '.' ? ":\n" : "\n");
    return text;
  }
};

/// Where the words after the first line of a broken one stand.
std::size_t indent_of(const std::string& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (begin == 2 && line.size() > description_column && line[description_column - 1] == ' ' &&
      line[description_column] != ' ')
    return description_column;
  return begin == 2 ? 4 : begin;
}

std::string wrapped_line(std::string line, std::size_t width) {
  if (line.starts_with("  widelimit") || line.starts_with("  echo")) return line;
  const std::size_t indent = indent_of(line);
  std::string text;
  while (line.size() > width) {
    std::size_t end = line.rfind(' ', width);
    if (end == std::string::npos || end <= indent) end = line.find(' ', width);
    if (end == std::string::npos) break;
    text += line.substr(0, line.find_last_not_of(' ', end) + 1) + "\n";
    line = std::string(indent, ' ') + line.substr(std::min(line.find_first_not_of(' ', end), line.size()));
  }
  return text + line;
}

std::optional<std::size_t> help_width() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr)
    if (const auto number = whole_text_number(columns); number && *number >= 1 && *number < 1e6)
      return std::max(narrowest, static_cast<std::size_t>(*number));
  const auto columns = terminal_columns(STDOUT_FILENO);
  return columns ? std::optional(std::max(narrowest, *columns)) : std::nullopt;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) result += wrapped_line(line, width) + "\n";
  return result;
}

void print_help(const CLI::App& program) {
  const std::string text = program.help();
  const auto width = help_width();
  std::fputs((width ? wrapped(text, *width) : text).c_str(), stdout);
}

void list_choices(CLI::App& program) {
  program.formatter(std::make_shared<HelpFormatter>());
  for (CLI::App* command : program.get_subcommands([](CLI::App*) { return true; })) list_choices(*command);
}

}  // namespace widelimit::cli
