#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "widelimit/text/visible_text.hpp"

namespace CLI {
class App;
}

/// What commands print: on standard output text for people, or the results alone as JSON; on standard error what else
/// people should know. Nothing that stands in a name or a file reaches a terminal but letters, line breaks and tabs:
/// every text goes through these functions.
namespace widelimit::cli {

/// --json, for commands that print results.
void add_json_option(CLI::App& command);

/// Whether --json was given.
[[nodiscard]] bool prints_json();

/// Prints a text of several lines; see visible_lines().
void print_text(std::FILE* file, std::string_view text);

/// Prints a JSON document on standard output; see visible_json().
void print_document(std::string_view document);

/// Prints what is for people: nothing beside --json.
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  if (!prints_json()) print_text(stdout, fmt::format(text, std::forward<Values>(values)...));
}

/// Prints a line on standard error.
void print_notice(std::string_view line);

/// Prints "widelimit: warning: ..." as a line on standard error.
template <typename... Values>
void warn(fmt::format_string<Values...> text, Values&&... values) {
  print_notice("widelimit: warning: " + short_message(fmt::format(text, std::forward<Values>(values)...)));
}

/// Prints results as a line of JSON with --json, else as result_text().
void print_result(const nlohmann::ordered_json& result);

/// Prints a table with a header: as {"columns", "rows"} with --json, else as it is.
void print_csv(const std::string& csv);

/// Writes out what was printed so far. Throws Error if standard output did not take it, or something before.
void flush_standard_output();

/// Results for people, in the order in which they come: a line for each number, "name.of.it   value", with 6 digits;
/// lists of objects as tables, and what is longer than a line by its size.
[[nodiscard]] std::string result_text(const nlohmann::ordered_json& result);

}  // namespace widelimit::cli
