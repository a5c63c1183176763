#pragma once

#include "json/json_value.hpp"
#include "widelimit/matrix.hpp"

/// Matrices and vectors as kinds of JSON values.
namespace widelimit {

/// Reads a matrix of `T` (double or bool) with `width` columns from a list of rows. What was expected and what came
/// instead if it is none, nothing if all is well.
template <JsonReadable T>
[[nodiscard]] std::string read_rows(const nlohmann::json& rows, std::size_t width, Matrix<T>& target);

/// The matrix as a list of rows.
template <typename T>
[[nodiscard]] nlohmann::ordered_json json_rows(const Matrix<T>& matrix);

/// One list a row, all of them of one length.
template <>
struct JsonKind<Matrix<double>> {
  static std::string one() { return "a list of number lists of equal length"; }
  static bool read(const nlohmann::json& value, Matrix<double>& target);
};

/// A list, or a single number, which counts as a list of one.
template <>
struct JsonKind<Vector<double>> {
  static std::string one() { return "a list of numbers"; }
  static bool read(const nlohmann::json& value, Vector<double>& target);
};

}  // namespace widelimit
