#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check/worst_row.hpp"
#include "json/json_matrix.hpp"
#include "widelimit/error.hpp"

/// Reading of reference files, the same for every subject. Another subject, and a field that is missing or of another
/// kind, is a DataError that names the place. A case whose inputs cannot be computed, or do not give the numbers that
/// it expects, is a row that fails.
namespace widelimit::check {

/// The document of a file whose field "subject" is the one expected.
[[nodiscard]] JsonValue reference_file(const nlohmann::json& document, std::string_view subject);

/// Numbers of a field: a number, null (NaN: there is none), or lists of them, in row-major order.
[[nodiscard]] std::vector<double> flat_numbers(const JsonValue& value);

[[nodiscard]] Matrix<double> square_matrix(const JsonValue& value);

/// The numbers of a recomputed field, arrays in row-major order.
class Numbers {
 public:
  Numbers() = default;
  Numbers(double value) : values_{value} {}                            // NOLINT(google-explicit-constructor)
  Numbers(std::vector<double> values) : values_{std::move(values)} {}  // NOLINT(google-explicit-constructor)
  template <typename Derived>
  Numbers(const Eigen::MatrixBase<Derived>& matrix) {  // NOLINT(google-explicit-constructor)
    values_.reserve(static_cast<std::size_t>(matrix.size()));
    for (Index i = 0; i < matrix.rows(); ++i)
      for (Index j = 0; j < matrix.cols(); ++j) values_.push_back(matrix(i, j));
  }

  void append(const Numbers& more) {
    values_.insert(values_.end(), more.values_.begin(), more.values_.end());
  }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  std::vector<double> values_;
};

/// Recomputed fields of a case.
using CaseFields = std::map<std::string, Numbers>;

/// A field by its name; DataError if the case gave none.
[[nodiscard]] const std::vector<double>& field_of(const CaseFields& fields, const std::string& name);

/// The largest error that an entry of a field may have.
using EntryTolerance = std::function<double(const std::string& field, std::size_t entry, double expected)>;
/// "abs_tol" + "rel_tol" |expected|.
[[nodiscard]] EntryTolerance tolerance_of(const JsonValue& entry);

/// Fields of an object with their numbers, as they are expected.
using ExpectedFields = std::map<std::string, std::vector<double>>;
[[nodiscard]] ExpectedFields expected_fields(const JsonValue& object);

/// A row "id/field" for every field that is expected: the entry that lies furthest from its tolerance.
void compare_fields(const std::string& id, const ExpectedFields& expected, const CaseFields& computed,
                    const EntryTolerance& tolerance, Rows& rows);

/// The cases of the file: {"id", "function", "inputs", "expected": {field: numbers}, "rel_tol", "abs_tol"}.
using Recompute = std::function<CaseFields(const std::string& function, const JsonValue& inputs)>;
void check_cases(const JsonValue& file, const Recompute& recompute, Rows& rows);

/// The function of that name; DataError for a name that the subject does not know.
template <typename Function>
const Function& function_of(const std::map<std::string, Function>& functions, const std::string& name) {
  const auto found = functions.find(name);
  if (found == functions.end()) throw DataError("unknown function \"" + name + "\"");
  return found->second;
}

/// body(rows); an error of this library becomes the failed row "id: message" after the rows that were made before it.
void failing_row(const std::string& id, Rows& rows, const std::function<void()>& body);

}  // namespace widelimit::check
