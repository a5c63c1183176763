#pragma once

#include "json/json_value.hpp"
#include "widelimit/matrix.hpp"

/// Matrices and vectors as kinds of JSON values.
namespace widelimit {

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
