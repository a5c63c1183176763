#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "widelimit/matrix.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::layers {

/// For readers of layers and configurations whose fields hold matrices.
///
/// The matrix [rows, columns] that `rows`, the value of a field, lists row by row. Throws
/// NetworkError("PATH.FIELD: ...") unless it is a list of at least one row, all of them lists of as many numbers.
[[nodiscard]] Matrix<double> read_matrix_rows(const FieldReader& fields, const std::string& field,
                                              const nlohmann::json& rows);

/// A field with as many rows as columns, of double or bool, which is then read. Errors as above.
template <typename T>
[[nodiscard]] Matrix<T> read_square_matrix(FieldReader& fields, const std::string& field);

}  // namespace widelimit::layers
