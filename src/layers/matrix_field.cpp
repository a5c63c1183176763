#include "layers/matrix_field.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "json/json_value.hpp"

namespace widelimit::layers {

Matrix<double> read_matrix_rows(const FieldReader& fields, const std::string& field,
                                const nlohmann::json& rows) {
  if (!rows.is_array() || rows.empty() || !rows[0].is_array() || rows[0].empty())
    fields.fail(field, "expected a list of rows, got " + shown_json(rows));
  const std::size_t columns = rows[0].size();
  std::vector<double> values;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].is_array() || rows[i].size() != columns)
      fields.fail(field,
                  fmt::format("expected rows of {} numbers, got {} in row {}", columns,
                              rows[i].is_array() ? std::to_string(rows[i].size()) : shown_json(rows[i]), i));
    for (const nlohmann::json& entry : rows[i]) {
      double number = 0;
      if (!JsonKind<double>::read(entry, number))
        fields.fail(field, fmt::format("expected numbers in row {}, got {}", i, shown_json(entry)));
      values.push_back(number);
    }
  }
  return Eigen::Map<const Matrix<double>>(values.data(), static_cast<Index>(rows.size()),
                                          static_cast<Index>(columns));
}

nlohmann::ordered_json matrix_rows(const Matrix<double>& matrix) {
  auto rows = nlohmann::ordered_json::array();
  for (Index a = 0; a < matrix.rows(); ++a)
    rows.push_back(std::vector<double>(matrix.row(a).begin(), matrix.row(a).end()));
  return rows;
}

}  // namespace widelimit::layers
