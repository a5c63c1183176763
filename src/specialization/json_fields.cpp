#include "json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::specialization {

using nlohmann::json;

namespace {

/// False if something that is not a number is found.
bool append_numbers(const json& value, std::vector<double>& numbers) {
  if (double number = 0; JsonKind<double>::read(value, number)) {
    numbers.push_back(number);
    return true;
  }
  return value.is_array() && std::all_of(value.begin(), value.end(),
                                         [&](const json& item) { return append_numbers(item, numbers); });
}

}  // namespace

JsonFields::JsonFields(const json& object, std::string context)
    : object_{object}, context_{std::move(context)} {
  if (!object.is_object())
    throw ArgumentError(fmt::format("{}: expected a JSON object, got {}", context_, object.type_name()));
}

bool JsonFields::has(const std::string& field) const { return object_.contains(field); }

void JsonFields::allow_only(const std::vector<const char*>& known) const {
  for (const auto& item : object_.items())
    if (std::none_of(known.begin(), known.end(), [&](const char* name) { return item.key() == name; }))
      throw ArgumentError(
          fmt::format("{}.{}: unknown field; known are {}", context_, item.key(), fmt::join(known, ", ")));
}

const json& JsonFields::at(const std::string& field) const {
  const auto place = object_.find(field);
  if (place == object_.end()) throw ArgumentError(fmt::format("{}.{}: missing", context_, field));
  return *place;
}

JsonValue JsonFields::value(const std::string& field) const {
  return {at(field), fmt::format("{}.{}", context_, field)};
}

void JsonFields::reject(const std::string& field, const std::string& expected) const {
  throw ArgumentError(
      fmt::format("{}.{}: expected {}, got {}", context_, field, expected, shown_json(at(field))));
}

template <typename T>
T JsonFields::converted(const std::string& field) const {
  T result{};
  if (!JsonKind<T>::read(at(field), result)) reject(field, JsonKind<T>::one());
  return result;
}

std::string JsonFields::text(const std::string& field) const { return converted<std::string>(field); }

double JsonFields::number(const std::string& field) const { return converted<double>(field); }

double JsonFields::number(const std::string& field, double otherwise) const {
  return has(field) ? number(field) : otherwise;
}

Index JsonFields::integer(const std::string& field) const { return converted<Index>(field); }

Index JsonFields::integer(const std::string& field, Index otherwise) const {
  return has(field) ? integer(field) : otherwise;
}

std::vector<double> JsonFields::flat(const std::string& field) const {
  std::vector<double> numbers;
  if (!append_numbers(at(field), numbers)) reject(field, "numbers");
  return numbers;
}

Vector<double> JsonFields::vector(const std::string& field) const {
  const std::vector<double> numbers =
      at(field).is_number() ? std::vector<double>{number(field)} : converted<std::vector<double>>(field);
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

Matrix<double> JsonFields::matrix(const std::string& field) const {
  std::vector<std::vector<double>> rows;
  const bool read = JsonKind<std::vector<std::vector<double>>>::read(at(field), rows);
  if (!read || std::any_of(rows.begin(), rows.end(),
                           [&](const auto& row) { return row.size() != rows.front().size(); }))
    reject(field, "a list of number lists of equal length");
  const std::size_t width = rows.empty() ? 0 : rows.front().size();
  Matrix<double> matrix(static_cast<Index>(rows.size()), static_cast<Index>(width));
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(), matrix.row(static_cast<Index>(i)).data());
  return matrix;
}

std::vector<Index> JsonFields::integers(const std::string& field) const {
  return converted<std::vector<Index>>(field);
}

HeadActivation activation_of(const JsonFields& fields) {
  return head_activation_from_name(fields.text("activation"));
}

}  // namespace widelimit::specialization
