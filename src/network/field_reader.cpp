#include "widelimit/network/field_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "network/registry.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

using nlohmann::json;

FieldReader::FieldReader(const json& object, std::string path) : object_{object}, path_{std::move(path)} {
  if (!object_.is_object())
    throw NetworkError(fmt::format("{}: expected a JSON object, got {}", path_, object_.type_name()));
}

bool FieldReader::has(std::string_view field) const { return object_.contains(field); }

void FieldReader::fail(std::string_view field, const std::string& message) const {
  throw NetworkError(fmt::format("{}.{}: {}", path_, field, message));
}

const json& FieldReader::value(std::string_view field) {
  const auto found = object_.find(field);
  if (found == object_.end()) fail(field, "expected this field, got none");
  read_.emplace(field);
  return *found;
}

double FieldReader::number(std::string_view field, std::optional<double> fallback) {
  if (!has(field) && fallback) return *fallback;
  const json& number = value(field);
  if (!number.is_number()) fail(field, fmt::format("expected a number, got {}", number.dump()));
  return number.get<double>();
}

Index FieldReader::integer(std::string_view field, std::optional<Index> fallback) {
  if (!has(field) && fallback) return *fallback;
  const json& number = value(field);
  if (!number.is_number_integer()) fail(field, fmt::format("expected an integer, got {}", number.dump()));
  return number.get<Index>();
}

bool FieldReader::boolean(std::string_view field, std::optional<bool> fallback) {
  if (!has(field) && fallback) return *fallback;
  const json& truth = value(field);
  if (!truth.is_boolean()) fail(field, fmt::format("expected true or false, got {}", truth.dump()));
  return truth.get<bool>();
}

std::string FieldReader::text(std::string_view field, std::optional<std::string> fallback) {
  if (!has(field) && fallback) return *fallback;
  const json& text = value(field);
  if (!text.is_string()) fail(field, fmt::format("expected a string, got {}", text.dump()));
  return text.get<std::string>();
}

std::vector<double> FieldReader::numbers(std::string_view field) {
  const json& list = value(field);
  if (!list.is_array() ||
      !std::all_of(list.begin(), list.end(), [](const json& item) { return item.is_number(); }))
    fail(field, fmt::format("expected a list of numbers, got {}", list.dump()));
  return list.get<std::vector<double>>();
}

std::vector<Index> FieldReader::integers(std::string_view field, std::optional<std::vector<Index>> fallback) {
  if (!has(field) && fallback) return *fallback;
  const json& list = value(field);
  if (!list.is_array() ||
      !std::all_of(list.begin(), list.end(), [](const json& item) { return item.is_number_integer(); }))
    fail(field, fmt::format("expected a list of integers, got {}", list.dump()));
  return list.get<std::vector<Index>>();
}

std::vector<std::string> FieldReader::texts(std::string_view field,
                                            std::optional<std::vector<std::string>> fallback) {
  if (!has(field) && fallback) return *fallback;
  const json& list = value(field);
  if (!list.is_array() ||
      !std::all_of(list.begin(), list.end(), [](const json& item) { return item.is_string(); }))
    fail(field, fmt::format("expected a list of strings, got {}", list.dump()));
  return list.get<std::vector<std::string>>();
}

std::string FieldReader::choice(std::string_view field, std::initializer_list<std::string_view> words,
                                std::optional<std::string> fallback) {
  std::string word = text(field, std::move(fallback));
  if (std::find(words.begin(), words.end(), word) == words.end())
    fail(field, fmt::format("expected one of {}, got \"{}\"", fmt::join(words, ", "), word));
  return word;
}

Layers FieldReader::layers(std::string_view field) {
  return read_layers(value(field), fmt::format("{}.{}", path_, field));
}

void FieldReader::finish() const {
  for (const auto& [name, ignored] : object_.items())
    if (!read_.contains(name)) fail(name, "unknown field");
}

}  // namespace widelimit
