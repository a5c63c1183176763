#include "widelimit/propagation/check_reference.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "propagation/check_cases.hpp"
#include "widelimit/error.hpp"

namespace widelimit::propagation {

namespace {

using check::CheckRow;
using nlohmann::json;

constexpr const char* subject = "signal-propagation";

struct Tolerance {
  double relative, absolute;
};

/// "There is none" must meet "there is none".
CheckRow compared(double expected, double computed, const Tolerance& tolerance) {
  if (std::isnan(expected) && std::isnan(computed)) return {"", expected, computed, 0, 0, true};
  const double allowed = tolerance.absolute + tolerance.relative * std::abs(expected);
  const double error = std::abs(computed - expected);
  return {"", expected, computed, error, allowed, error <= allowed};
}

/// The entry that lies furthest from its tolerance.
CheckRow worst_of(const std::string& name, const std::vector<double>& expected,
                  const std::vector<double>& computed, const Tolerance& tolerance) {
  if (expected.size() != computed.size())
    throw DataError(
        fmt::format("{}: the file holds {} numbers, computed {}", name, expected.size(), computed.size()));
  CheckRow worst;
  double worst_part = -1;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const CheckRow row = compared(expected[i], computed[i], tolerance);
    const double part = row.passed ? (row.tolerance > 0 ? row.error / row.tolerance : 0)
                                   : (std::isfinite(row.error) ? 1 + row.error : HUGE_VAL);
    if (part <= worst_part) continue;
    worst_part = part;
    worst = row;
  }
  worst.name = name;
  return worst;
}

CheckRow failed(const std::string& name, const std::string& reason) {
  const double none = std::nan("");
  return {fmt::format("{}: {}", name, reason), none, none, none, 0, false};
}

Tolerance tolerance_of(const JsonValue& entry) { return {entry.at("rel_tol"), entry.at("abs_tol")}; }

void check_case(const JsonValue& entry, std::vector<CheckRow>& rows) {
  const std::string id = entry.at("id"), function = entry.at("function");
  const std::string name = fmt::format("{} ({})", id, function);
  const JsonValue expected = entry.at("expected");
  CaseFields computed;
  try {
    computed = recompute(function, entry.at("inputs"));
  } catch (const Error& error) {
    rows.push_back(failed(name, error.what()));
    return;
  }
  for (const auto& [field, value] : expected.items()) {
    const std::string row_name = fmt::format("{} {}", name, field);
    const auto found = computed.find(field);
    rows.push_back(found == computed.end()
                       ? failed(row_name, "is not known")
                       : worst_of(row_name, flat_numbers(value), found->second, tolerance_of(entry)));
  }
}

void check_grid(const JsonValue& grid, std::vector<CheckRow>& rows) {
  const std::string id = grid.at("id");
  const JsonValue row_axis = grid.at("row_axis"), column_axis = grid.at("column_axis");
  const std::string row_name = row_axis.at("name"), column_name = column_axis.at("name");
  const std::vector<double> row_values = row_axis.at("values"), column_values = column_axis.at("values");
  for (const auto& [quantity, expected] : grid.at("values").items()) {
    std::vector<double> computed;
    for (const double row : row_values)
      for (const double column : column_values) {
        json inputs = grid.at("fixed").raw();
        inputs[row_name] = row;
        inputs[column_name] = column;
        computed.push_back(grid_value(quantity, read_parameters(JsonValue(inputs, grid.path() + ".fixed"))));
      }
    rows.push_back(worst_of(fmt::format("grid {} {}", id, quantity), flat_numbers(expected), computed,
                            tolerance_of(grid)));
  }
}

}  // namespace

check::CheckReport check_reference(const json& reference) {
  const JsonValue file(reference, "reference file");
  const std::string found = file.at("subject");
  if (found != subject)
    throw DataError(fmt::format("reference file: subject must be {}, got {}", subject, found));
  check::CheckReport report;
  for (const JsonValue& entry : file.at("cases").list()) check_case(entry, report.rows);
  if (file.contains("grids"))
    for (const JsonValue& grid : file.at("grids").list()) check_grid(grid, report.rows);
  return report;
}

}  // namespace widelimit::propagation
