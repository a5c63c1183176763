#include "cli/output/result_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "cli/output/text_parts.hpp"
#include "widelimit/index.hpp"
#include "widelimit/version.hpp"

namespace widelimit::cli {

nlohmann::ordered_json origin_json(const Origin& origin) {
  nlohmann::ordered_json json{
      {"widelimit", version}, {"command", origin.command}, {"configuration", origin.configuration}};
  if (origin.seed) json["seed"] = *origin.seed;
  return json;
}

std::string origin_comment(const Origin& origin) {
  std::string text = fmt::format("# widelimit {}, {}\n# configuration: {}\n", version, origin.command,
                                 origin.configuration.dump());
  if (origin.seed) text += fmt::format("# seed: {}\n", *origin.seed);
  return text;
}

nlohmann::json matrix_json(const Matrix<double>& matrix) {
  nlohmann::json rows = nlohmann::json::array();
  for (Index i = 0; i < matrix.rows(); ++i)
    rows.push_back(std::vector<double>(matrix.row(i).begin(), matrix.row(i).end()));
  return rows;
}

nlohmann::json estimate_json(const numerics::Estimate& estimate) {
  return {{"value", estimate.value}, {"standard_error", estimate.standard_error}};
}

std::string csv_rows(const ResultTable& table) {
  std::string text;
  for (const std::string& column : table.columns) text += (text.empty() ? "" : ",") + csv_field(column);
  text += "\n";
  for (const std::vector<double>& row : table.rows)
    fmt::format_to(std::back_inserter(text), "{}\n", fmt::join(row, ","));
  return text;
}

}  // namespace widelimit::cli
