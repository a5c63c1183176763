#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "widelimit/matrix.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::layers {

/// A matrix from a list of rows of equal length. Throws NetworkError naming the field if it is none.
Matrix<double> read_matrix_rows(const FieldReader& fields, const std::string& field,
                                const nlohmann::json& rows);

/// The matrix as a list of rows.
nlohmann::ordered_json matrix_rows(const Matrix<double>& matrix);

}  // namespace widelimit::layers
