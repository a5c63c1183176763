#pragma once

#include <string>
#include <vector>

#include "json/json_value.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/specialization/activation.hpp"

namespace widelimit::specialization {

/// Typed reading of one JSON object; every error names the field as "context.field".
class JsonFields {
 public:
  /// ArgumentError unless `object` is a JSON object. Keeps a reference to it.
  JsonFields(const nlohmann::json& object, std::string context);

  bool has(const std::string& field) const;
  /// ArgumentError naming the first field that is not in the list.
  void allow_only(const std::vector<const char*>& known) const;

  const nlohmann::json& at(const std::string& field) const;
  /// The field with checked access to what is in it; its errors are DataErrors.
  JsonValue value(const std::string& field) const;
  std::string text(const std::string& field) const;
  double number(const std::string& field) const;
  double number(const std::string& field, double otherwise) const;
  Index integer(const std::string& field) const;
  Index integer(const std::string& field, Index otherwise) const;
  /// A list of numbers; a single number counts as a list of one.
  Vector<double> vector(const std::string& field) const;
  Matrix<double> matrix(const std::string& field) const;
  std::vector<Index> integers(const std::string& field) const;
  /// All numbers of a nested list, in row-major order.
  std::vector<double> flat(const std::string& field) const;

 private:
  template <typename T>
  T converted(const std::string& field) const;
  [[noreturn]] void reject(const std::string& field, const std::string& expected) const;

  const nlohmann::json& object_;
  std::string context_;
};

/// The activation that the field "activation" names.
HeadActivation activation_of(const JsonFields& fields);

}  // namespace widelimit::specialization
