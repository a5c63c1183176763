#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "widelimit/matrix.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::layers {

/// A matrix from a list of rows of equal length. Throws NetworkError naming the field if it is none, or empty.
Matrix<double> read_matrix_rows(const FieldReader& fields, const std::string& field,
                                const nlohmann::json& rows);

/// A field with as many rows as columns, of double or bool.
template <typename T>
Matrix<T> read_square_matrix(FieldReader& fields, const std::string& field);

}  // namespace widelimit::layers
