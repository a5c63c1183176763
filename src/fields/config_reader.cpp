#include "widelimit/fields/config_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace widelimit {

using nlohmann::json;

ConfigReader::ConfigReader(const json& config, const ConfigFields& fields, std::string path)
    : FieldReader(config, std::move(path)), config_(config), fields_{fields} {
  check_fields(config, fields, FieldReader::path());
}

void ConfigReader::require_one(std::string_view field, std::initializer_list<std::string_view> others,
                               std::string_view or_else) const {
  const auto given = [this](std::string_view name) { return has(name); };
  if (given(field) || std::ranges::any_of(others, given)) return;
  fail(field, fmt::format("expected this field, or {}, got none", or_else));
}

void ConfigReader::require_either(std::string_view field, std::string_view other) const {
  require_one(field, {other}, other);
  if (has(field) && has(other)) fail(field, fmt::format("give either {} or {}", field, other));
}

bool ConfigReader::knows(std::string_view field) const { return find_field(fields_, field) != nullptr; }

json ConfigReader::default_of(std::string_view field) const {
  const ConfigField* row = find_field(fields_, field);
  return row == nullptr ? json(nullptr) : row->default_json();
}

namespace {

/// The computed default, or that of the row.
template <typename T>
std::optional<T> default_value(const std::optional<T>& computed, const json& of_row) {
  return computed || of_row.is_null() ? computed : of_row.get<T>();
}

}  // namespace

double ConfigReader::number(std::string_view field, std::optional<double> computed) {
  return FieldReader::number(field, default_value(computed, default_of(field)));
}

Index ConfigReader::integer(std::string_view field, std::optional<Index> computed) {
  return FieldReader::integer(field, default_value(computed, default_of(field)));
}

bool ConfigReader::boolean(std::string_view field) {
  return FieldReader::boolean(field, default_value<bool>({}, default_of(field)));
}

std::string ConfigReader::text(std::string_view field, std::optional<std::string> computed) {
  return FieldReader::text(field, default_value(computed, default_of(field)));
}

}  // namespace widelimit
