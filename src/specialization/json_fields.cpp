#include "json_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::specialization {

using Eigen::Index;
using nlohmann::json;

namespace {

/// False if something that is not a number is found.
bool append_numbers(const json& value, std::vector<double>& numbers) {
  if (value.is_number()) {
    numbers.push_back(value.get<double>());
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

void JsonFields::reject(const std::string& field, const std::string& expected) const {
  throw ArgumentError(fmt::format("{}.{}: expected {}, got {}", context_, field, expected,
                                  std::string_view(at(field).dump()).substr(0, 60)));
}

std::string JsonFields::text(const std::string& field) const {
  if (!at(field).is_string()) reject(field, "a string");
  return at(field).get<std::string>();
}

double JsonFields::number(const std::string& field) const {
  if (!at(field).is_number()) reject(field, "a number");
  return at(field).get<double>();
}

double JsonFields::number(const std::string& field, double otherwise) const {
  return has(field) ? number(field) : otherwise;
}

Index JsonFields::integer(const std::string& field) const {
  if (!at(field).is_number_integer()) reject(field, "an integer");
  return at(field).get<Index>();
}

Index JsonFields::integer(const std::string& field, Index otherwise) const {
  return has(field) ? integer(field) : otherwise;
}

std::vector<double> JsonFields::flat(const std::string& field) const {
  std::vector<double> numbers;
  if (!append_numbers(at(field), numbers)) reject(field, "numbers");
  return numbers;
}

Vector<double> JsonFields::vector(const std::string& field) const {
  const json& value = at(field);
  if (!value.is_number() &&
      !(value.is_array() &&
        std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_number(); })))
    reject(field, "a list of numbers");
  const std::vector<double> numbers = flat(field);
  return Eigen::Map<const Vector<double>>(numbers.data(), static_cast<Index>(numbers.size()));
}

Matrix<double> JsonFields::matrix(const std::string& field) const {
  const json& rows = at(field);
  const auto is_row = [&](const json& row) {
    return row.is_array() && row.size() == rows.front().size() &&
           std::all_of(row.begin(), row.end(), [](const json& item) { return item.is_number(); });
  };
  if (!rows.is_array() || !std::all_of(rows.begin(), rows.end(), is_row))
    reject(field, "a list of number lists of equal length");
  const std::vector<double> numbers = flat(field);
  const Index count = static_cast<Index>(rows.size());
  const Index width = count == 0 ? 0 : static_cast<Index>(rows.front().size());
  return Eigen::Map<const Matrix<double>>(numbers.data(), count, width);
}

std::vector<Index> JsonFields::integers(const std::string& field) const {
  const json& value = at(field);
  if (!value.is_array() ||
      !std::all_of(value.begin(), value.end(), [](const json& item) { return item.is_number_integer(); }))
    reject(field, "a list of integers");
  return value.get<std::vector<Index>>();
}

HeadActivation activation_of(const JsonFields& fields) {
  return head_activation_from_name(fields.text("activation"));
}

}  // namespace widelimit::specialization
