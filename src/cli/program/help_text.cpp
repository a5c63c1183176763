#include "cli/program/help_text.hpp"

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

constexpr std::size_t narrowest = 40, description_column = 30, stacked_below = 70;

class HelpFormatter : public CLI::Formatter {
 public:
  /// Two spaces stand before every description, so that readers of the text can tell where one begins.
  [[nodiscard]] std::string make_option(const CLI::Option* option, bool positional) const override {
    std::string text = "  " + make_option_name(option, positional) + make_option_opts(option);
    std::istringstream description(make_option_desc(option));
    if (text.size() + 2 > description_column) text += "\n";
    for (std::string line; std::getline(description, line); text += "\n") {
      const std::size_t end = text.rfind('\n');
      const std::size_t column = end == std::string::npos ? text.size() : text.size() - end - 1;
      text += std::string(description_column - column, ' ') + line;
    }
    return text.ends_with('\n') ? text : text + "\n";
  }

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

/// Whether a description begins after the name of an option or a command.
bool has_description(const std::string& line) {
  return line.size() > description_column && line.starts_with("  ") && line[2] != ' ' &&
         line.substr(description_column - 2, 2) == "  " && line[description_column] != ' ';
}

/// "npy: arrays": one of the choices that a description lists.
bool is_choice(const std::string& line, std::size_t begin) {
  const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", begin);
  return end != std::string::npos && end > begin && line.compare(end, 2, ": ") == 0;
}

/// Where the words after the first line of a broken one stand.
std::size_t indent_of(const std::string& line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  if (has_description(line)) return description_column + (is_choice(line, description_column) ? 2 : 0);
  if (begin == 2) return 4;
  return begin > 2 && is_choice(line, begin) ? begin + 2 : begin;
}

/// The last place at which a line may be broken so that its first part has at most `width` letters: after a space,
/// or within a word that is too long for any line. Nothing where there is none.
std::optional<std::size_t> break_place(const std::string& line, std::size_t indent, std::size_t width) {
  const std::size_t space = line.rfind(' ', width);
  if (space != std::string::npos && line.find_first_not_of(' ') < space && space > indent) return space + 1;
  const std::size_t mark = line.find_last_of("|,/:=", width - 1);
  if (mark != std::string::npos && mark > indent) return mark + 1;
  const std::size_t next = line.find(' ', width);
  return next == std::string::npos ? std::nullopt : std::optional(next + 1);
}

std::string without_end_spaces(const std::string& text) {
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

std::string wrapped_line(std::string line, std::size_t width) {
  const std::size_t indent = indent_of(line);
  std::string text;
  while (line.size() > width) {
    const auto place = break_place(line, indent, width);
    if (!place) break;
    text += without_end_spaces(line.substr(0, *place)) + "\n";
    const std::size_t begin = std::min(line.find_first_not_of(' ', *place), line.size());
    line = std::string(indent, ' ') + line.substr(begin);
  }
  return text + line;
}

bool is_command(const std::string& line) {
  return line.starts_with("  widelimit") || line.starts_with("  echo ") || line.starts_with("  source ");
}

/// Where to break a command for a shell: before an option if there is one, else before the last word that ends
/// within `width` letters, or after the first one where it is longer. Within quotes, which hold JSON, spaces may be
/// broken too.
std::size_t command_break(const std::string& line, std::size_t indent, std::size_t width, bool& quoted) {
  std::size_t last = 0, option = 0, quoted_last = 0;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (i > width && (last != 0 || quoted_last != 0)) break;
    const char c = line[i];
    if (quote == 0 && (c == '\'' || c == '"'))
      quote = c;
    else if (c == quote)
      quote = 0;
    else if (c == ' ' && i > indent && quote == 0 && (i + 2 <= width || last == 0)) {
      last = i;
      if (line.compare(i + 1, 2, "--") == 0) option = i;
    } else if (c == ' ' && i > indent && quote == '\'')
      quoted_last = i;
  }
  quoted = option == 0 && quoted_last > last;
  if (quoted) return quoted_last;
  return option != 0 ? option : last;
}

/// A command continues after a backslash, so that a shell takes it as it is.
std::string wrapped_command(std::string line, std::size_t width) {
  std::string text;
  std::size_t indent = 2;
  while (line.size() > width) {
    bool quoted = false;
    const std::size_t place = command_break(line, indent, width, quoted);
    if (place == 0) break;
    text += line.substr(0, place) + (quoted ? "\n" : " \\\n");
    indent = 4;
    line = std::string(indent, ' ') + line.substr(place + 1);
  }
  return text + line;
}

/// In narrow terminals descriptions stand below the names that they describe.
std::string stacked(const std::string& line) {
  const std::string below(6, ' ');
  if (has_description(line))
    return without_end_spaces(line.substr(0, description_column)) + "\n" + below +
           line.substr(description_column);
  return line.starts_with(std::string(description_column, ' ')) ? below + line.substr(description_column)
                                                                : line;
}

std::optional<std::size_t> help_width() {
  if (const char* columns = std::getenv("COLUMNS"); columns != nullptr)
    if (const auto number = whole_text_number(columns); number && *number >= 1 && *number < 1e6)
      return std::max(narrowest, static_cast<std::size_t>(*number));
  auto columns = terminal_columns(STDOUT_FILENO);
  // A pager reads standard output; errors still go to its terminal.
  if (!columns) columns = terminal_columns(STDERR_FILENO);
  return columns ? std::optional(std::max(narrowest, *columns)) : std::nullopt;
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t width) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (is_command(line)) {
      result += wrapped_command(line, width) + "\n";
      continue;
    }
    std::istringstream parts(width < stacked_below ? stacked(line) : line);
    if (line.empty()) result += '\n';
    for (std::string part; std::getline(parts, part);) result += wrapped_line(part, width) + "\n";
  }
  return result;
}

void print_help(const CLI::App& program) {
  std::string text = program.help();
  // The parser leaves two empty lines between groups of options.
  for (auto place = text.find("\n\n\n"); place != std::string::npos; place = text.find("\n\n\n", place))
    text.erase(place, 1);
  const auto width = help_width();
  std::fputs((width ? wrapped(text, *width) : text).c_str(), stdout);
}

void list_choices(CLI::App& program) { program.formatter(std::make_shared<HelpFormatter>()); }

}  // namespace widelimit::cli
