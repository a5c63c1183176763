#include "widelimit/layers/matrix_field.hpp"

#include <nlohmann/json.hpp>

#include "json/json_matrix.hpp"

namespace widelimit::layers {

namespace {

template <typename T>
Matrix<T> read_filled_rows(const FieldReader& fields, const std::string& field, const nlohmann::json& rows,
                           std::size_t width) {
  Matrix<T> matrix;
  const std::string wrong = read_rows(rows, width, matrix);
  if (!wrong.empty()) fields.fail(field, wrong);
  if (matrix.size() == 0) fields.fail(field, "expected a list of filled rows, got " + shown_json(rows));
  return matrix;
}

}  // namespace

Matrix<double> read_matrix_rows(const FieldReader& fields, const std::string& field,
                                const nlohmann::json& rows) {
  const bool has_rows = rows.is_array() && !rows.empty() && rows.front().is_array();
  return read_filled_rows<double>(fields, field, rows, has_rows ? rows.front().size() : 1);
}

template <typename T>
Matrix<T> read_square_matrix(FieldReader& fields, const std::string& field) {
  const nlohmann::json& rows = fields.value(field);
  return read_filled_rows<T>(fields, field, rows, rows.size());
}

template Matrix<double> read_square_matrix(FieldReader& fields, const std::string& field);
template Matrix<bool> read_square_matrix(FieldReader& fields, const std::string& field);

}  // namespace widelimit::layers
