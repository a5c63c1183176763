#include "widelimit/network/field_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "json/json_value.hpp"
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
  // finish() reports the fields that were never asked for, so that a misspelt optional field is an error and not a
  // silent default.
  read_.emplace(field);
  return *found;
}

template <typename T>
T FieldReader::converted(std::string_view field, std::optional<T> fallback) {
  // Without a fallback, value() reports the missing field.
  if (!has(field) && fallback) return *std::move(fallback);
  const json& given = value(field);
  T result{};
  if (!JsonKind<T>::read(given, result)) fail(field, wrong_kind<T>(given));
  return result;
}

double FieldReader::number(std::string_view field, std::optional<double> fallback) {
  return converted(field, fallback);
}

Index FieldReader::integer(std::string_view field, std::optional<Index> fallback) {
  return converted(field, fallback);
}

bool FieldReader::boolean(std::string_view field, std::optional<bool> fallback) {
  return converted(field, fallback);
}

std::string FieldReader::text(std::string_view field, std::optional<std::string> fallback) {
  return converted(field, std::move(fallback));
}

std::vector<double> FieldReader::numbers(std::string_view field) {
  return converted<std::vector<double>>(field, std::nullopt);
}

std::vector<Index> FieldReader::integers(std::string_view field, std::optional<std::vector<Index>> fallback) {
  return converted(field, std::move(fallback));
}

std::vector<std::string> FieldReader::texts(std::string_view field,
                                            std::optional<std::vector<std::string>> fallback) {
  return converted(field, std::move(fallback));
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

void FieldReader::finish(const std::string& message) const {
  for (const auto& [name, ignored] : object_.items())
    if (!read_.contains(name)) fail(name, message);
}

}  // namespace widelimit
