#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/output/result_text.hpp"
#include "cli/program/commands.hpp"
#include "widelimit/check/check_report.hpp"
#include "widelimit/covariance_sde/check_reference.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/propagation/check_reference.hpp"
#include "widelimit/specialization/check.hpp"

namespace widelimit::cli {
namespace {

/// The form of a file is named by its field "subject".
check::CheckReport recompute(const nlohmann::json& reference) {
  std::string subject;
  if (reference.is_object() && reference.contains("subject") && reference["subject"].is_string())
    subject = reference["subject"];
  if (subject == "shaped-transformer") return covariance_sde::check_reference(reference);
  if (subject == "head-specialization") return specialization::check_reference(reference);
  if (subject == "signal-propagation") return propagation::check_reference(reference);
  throw DataError(
      fmt::format("expected an object whose \"subject\" is shaped-transformer, head-specialization or "
                  "signal-propagation, got {}",
                  subject.empty() ? "another one" : subject));
}

nlohmann::json as_json(const check::CheckReport& report) {
  nlohmann::json rows = nlohmann::json::array();
  for (const check::CheckRow& row : report.rows)
    rows.push_back({{"case", row.name},
                    {"expected", row.expected},
                    {"computed", row.computed},
                    {"error", row.error},
                    {"tolerance", row.tolerance},
                    {"passed", row.passed}});
  return rows;
}

void print(const check::CheckReport& report) {
  if (prints_json()) return print_result(as_json(report));
  say("{:<70} {:>14} {:>14} {:>9} {:>9}\n", "case", "expected", "computed", "error", "tolerance");
  std::size_t failed = 0;
  for (const check::CheckRow& row : report.rows) {
    say("{:<70} {:>14.7g} {:>14.7g} {:>9.1e} {:>9.1e}{}\n", row.name, row.expected, row.computed, row.error,
        row.tolerance, row.passed ? "" : "  FAILED");
    if (!row.passed) ++failed;
  }
  say("{} passed, {} failed\n", report.rows.size() - failed, failed);
}

void fill_check_command(CLI::App& command, const RunContext& /*context*/) {
  auto file = std::make_shared<std::filesystem::path>();
  command.add_option("file", *file, "JSON file; its field \"subject\" names the form")->required();
  add_json_option(command);
  command.footer(
      "Prints name, expected, computed and error of every case; exit status 1 if one misses its tolerance.");
  command.callback([file] {
    const check::CheckReport report =
        naming_errors(file->string(), [&] { return recompute(read_json(*file)); });
    print(report);
    if (!report.passed())
      throw Error(fmt::format("{}: not all cases are within their tolerance", file->string()));
  });
}

}  // namespace

const Command check_command{"check", "Recomputes every case of a reference file and compares",
                            fill_check_command};

}  // namespace widelimit::cli
