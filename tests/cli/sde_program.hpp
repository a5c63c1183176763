#pragma once

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.hpp"

/// Runs `widelimit sde` on configurations.
namespace widelimit::testing {

/// A configuration in a folder of its own, and what `widelimit sde COMMAND` makes of it.
struct SdeRun : TemporaryFolder {
  SdeRun(const std::string& command, const nlohmann::json& config,
         const std::string& options = "--no-pictures") {
    std::ofstream(*this / "config.json") << config;
    const auto result = run_program("sde " + command + " " + (*this / "config.json").string() + " --out " +
                                    (*this / "out").string() + " " + options);
    code = result.code;
    output = result.output;
    errors = result.errors;
  }

  [[nodiscard]] std::string text(const std::string& file) const { return file_text(*this / "out" / file); }
  [[nodiscard]] nlohmann::json read(const std::string& file) const {
    return nlohmann::json::parse(text(file));
  }
  [[nodiscard]] std::filesystem::path operator/(const std::string& name) const { return path() / name; }

  int code = -1;
  std::string output;
  std::string errors;
};

/// Column of a CSV file whose rows all hold numbers there.
inline std::vector<double> column(const std::string& text, const std::string& name) {
  std::istringstream stream(without_comments(text));
  std::string line, cell;
  std::getline(stream, line);
  std::istringstream header(line);
  int place = 0;
  while (std::getline(header, cell, ',') && cell != name) ++place;
  REQUIRE(cell == name);
  std::vector<double> values;
  while (std::getline(stream, line)) {
    std::istringstream row(line);
    for (int i = 0; i <= place; ++i) std::getline(row, cell, ',');
    values.push_back(std::stod(cell));
  }
  return values;
}

/// Exit code 1, nothing on standard output, one line of error with the message after the configuration's
/// path, and behind "config" if it begins with a dot.
inline void check_sde_fails(const std::string& command, const nlohmann::json& config,
                            const std::string& message) {
  CAPTURE(command);
  CAPTURE(config);
  const SdeRun run(command, config);
  CHECK(run.code == 1);
  CHECK(run.output.empty());
  const std::string place = (run / "config.json").string() + ": " + (message.front() == '.' ? "config" : "");
  CHECK(run.errors == "widelimit: " + place + message + "\n");
}

}  // namespace widelimit::testing
