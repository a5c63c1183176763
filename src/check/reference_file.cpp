#include "check/reference_file.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::check {

namespace {

void check_case(const JsonValue& entry, const Recompute& recompute, Rows& rows) {
  const std::string id = entry.at("id"), function = entry.at("function");
  const JsonValue inputs = entry.at("inputs");
  const ExpectedFields expected = expected_fields(entry.at("expected"));
  const EntryTolerance tolerance = tolerance_of(entry);
  failing_row(id, rows, [&] { compare_fields(id, expected, recompute(function, inputs), tolerance, rows); });
}

}  // namespace

JsonValue reference_file(const nlohmann::json& document, std::string_view subject) {
  JsonValue file(document, "reference file");
  const JsonValue found = file.at("subject");
  if (const std::string name = found; name != subject)
    found.fail(fmt::format("expected {}, got {}", subject, cut_text(name)));
  return file;
}

std::vector<double> flat_numbers(const JsonValue& value) {
  if (value.raw().is_null()) return {std::nan("")};
  if (!value.raw().is_array()) return {value.get<double>()};
  std::vector<double> numbers;
  for (const JsonValue& entry : value.list())
    for (const double number : flat_numbers(entry)) numbers.push_back(number);
  return numbers;
}

Matrix<double> square_matrix(const JsonValue& value) {
  Matrix<double> matrix = value;
  if (matrix.rows() != matrix.cols())
    value.fail(fmt::format("expected a square matrix, got {} x {}", matrix.rows(), matrix.cols()));
  return matrix;
}

const std::vector<double>& field_of(const CaseFields& fields, const std::string& name) {
  const auto found = fields.find(name);
  if (found == fields.end()) throw DataError(fmt::format("{}: no field of this name is computed", name));
  return found->second.values();
}

EntryTolerance tolerance_of(const JsonValue& entry) {
  const double relative = entry.at("rel_tol"), absolute = entry.at("abs_tol");
  return [=](const std::string&, std::size_t, double expected) {
    return absolute + relative * std::abs(expected);
  };
}

ExpectedFields expected_fields(const JsonValue& object) {
  ExpectedFields fields;
  for (const auto& [field, numbers] : object.items()) fields.emplace(field, flat_numbers(numbers));
  return fields;
}

void compare_fields(const std::string& id, const ExpectedFields& expected, const CaseFields& computed,
                    const EntryTolerance& tolerance, Rows& rows) {
  for (const auto& [field, numbers] : expected) {
    const std::string name = fmt::format("{}/{}", id, field);
    failing_row(name, rows, [&, &field = field, &in_file = numbers] {
      const std::vector<double>& ours = field_of(computed, field);
      if (in_file.size() != ours.size())
        throw DataError(fmt::format("the file holds {} numbers, computed {}", in_file.size(), ours.size()));
      WorstRow worst;
      for (std::size_t i = 0; i < ours.size(); ++i)
        worst.add(in_file[i], ours[i], tolerance(field, i, in_file[i]));
      rows.push_back(worst.named(name));
    });
  }
}

void check_cases(const JsonValue& file, const Recompute& recompute, Rows& rows) {
  for (const JsonValue& entry : file.at("cases").list()) check_case(entry, recompute, rows);
}

void failing_row(const std::string& id, Rows& rows, const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    rows.push_back(failed_row(id, error.what()));
  }
}

}  // namespace widelimit::check
