#include "widelimit/propagation/check_reference.hpp"

#include <nlohmann/json.hpp>

#include "propagation/check_cases.hpp"

namespace widelimit::propagation {

namespace {

/// A quantity at every point of a grid, row after row.
check::Numbers recompute_grid(const std::string& quantity, const JsonValue& grid) {
  const JsonValue row_axis = grid.at("row_axis"), column_axis = grid.at("column_axis");
  const std::string row_name = row_axis.at("name"), column_name = column_axis.at("name");
  const std::vector<double> row_values = row_axis.at("values"), column_values = column_axis.at("values");
  nlohmann::json inputs = grid.at("fixed").raw();
  check::Numbers computed;
  for (const double row : row_values)
    for (const double column : column_values) {
      inputs[row_name] = row;
      inputs[column_name] = column;
      computed.append(grid_value(quantity, read_parameters(JsonValue(inputs, grid.path() + ".fixed"))));
    }
  return computed;
}

void check_grid(const JsonValue& grid, check::Rows& rows) {
  const std::string id = "grid " + grid.at("id").get<std::string>();
  const check::ExpectedFields expected = check::expected_fields(grid.at("values"));
  const check::EntryTolerance tolerance = check::tolerance_of(grid);
  check::failing_row(id, rows, [&] {
    CaseFields computed;
    for (const auto& [quantity, values] : expected) computed[quantity] = recompute_grid(quantity, grid);
    check::compare_fields(id, expected, computed, tolerance, rows);
  });
}

}  // namespace

check::CheckReport check_reference(const nlohmann::json& reference) {
  const JsonValue file = check::reference_file(reference, "signal-propagation");
  check::CheckReport report;
  check::check_cases(file, recompute, report.rows);
  if (file.contains("grids"))
    for (const JsonValue& grid : file.at("grids").list()) check_grid(grid, report.rows);
  return report;
}

}  // namespace widelimit::propagation
