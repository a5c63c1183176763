#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace CLI {
class App;
}

/// What commands print on standard output: text for people, or the results alone as JSON.
namespace widelimit::cli {

/// --json, for commands that print results.
void add_json_option(CLI::App& command);

/// Whether --json was given.
[[nodiscard]] bool prints_json();

/// Prints what is for people: nothing beside --json.
template <typename... Values>
void say(fmt::format_string<Values...> text, Values&&... values) {
  if (!prints_json()) fmt::print(text, std::forward<Values>(values)...);
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
