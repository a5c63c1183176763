#include "layers/matrix_field.hpp"

#include <nlohmann/json.hpp>
#include <vector>

#include "json/json_matrix.hpp"

namespace widelimit::layers {

Matrix<double> read_matrix_rows(const FieldReader& fields, const std::string& field,
                                const nlohmann::json& rows) {
  Matrix<double> matrix;
  if (!JsonKind<Matrix<double>>::read(rows, matrix) || matrix.size() == 0)
    fields.fail(field, "expected a list of number lists of equal length, got " + shown_json(rows));
  return matrix;
}

nlohmann::ordered_json matrix_rows(const Matrix<double>& matrix) {
  auto rows = nlohmann::ordered_json::array();
  for (Index a = 0; a < matrix.rows(); ++a)
    rows.push_back(std::vector<double>(matrix.row(a).begin(), matrix.row(a).end()));
  return rows;
}

}  // namespace widelimit::layers
