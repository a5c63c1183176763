#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace CLI {
class App;
}

namespace widelimit::cli {

struct RunContext;

/// Results for people: a line for each number, "name.of.it   value", with 6 digits; lists of objects as tables, and
/// what is longer than a line by its size.
[[nodiscard]] std::string result_text(const nlohmann::json& result);

/// --json, for commands that print results.
void add_json_option(CLI::App& command, const RunContext& context);

/// Prints results as JSON where --json asks for it, else as result_text(); `label` stands above that unless it is
/// empty.
void print_result(const RunContext& context, const nlohmann::json& result, const std::string& label = "");

}  // namespace widelimit::cli
