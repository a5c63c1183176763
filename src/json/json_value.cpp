#include "json/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

using nlohmann::json;

std::string cut_text(std::string_view text, std::size_t length) {
  std::string shown;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t character = std::max<std::size_t>(character_length(text, at), 1);
    if (at + character > length) break;
    const bool hidden = character_length(text, at) == 0 || static_cast<unsigned char>(text[at]) < 0x20;
    shown += hidden ? std::string_view("?") : text.substr(at, character);
    at += character;
  }
  // What would turn the direction of the message, and the like, becomes an escape.
  shown = visible_text(shown);
  return at == text.size() ? shown : shown + "...";
}

std::string shown_json(const json& value) {
  // JSON has no word for them.
  if (value.is_number_float() && !std::isfinite(value.get<double>()))
    return fmt::format("{}", value.get<double>());
  return cut_text(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

bool JsonKind<double>::read(const json& value, double& target) {
  if (!value.is_number()) return false;
  target = value.get<double>();
  return true;
}

bool JsonKind<Index>::read(const json& value, Index& target) {
  if (!value.is_number_integer()) return false;
  constexpr auto largest = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > largest) return false;
  target = value.get<Index>();
  return true;
}

bool JsonKind<int>::read(const json& value, int& target) {
  Index wide = 0;
  if (!JsonKind<Index>::read(value, wide) || !std::in_range<int>(wide)) return false;
  target = static_cast<int>(wide);
  return true;
}

bool JsonKind<bool>::read(const json& value, bool& target) {
  if (!value.is_boolean()) return false;
  target = value.get<bool>();
  return true;
}

bool JsonKind<std::string>::read(const json& value, std::string& target) {
  if (!value.is_string()) return false;
  target = value.get<std::string>();
  return true;
}

void JsonValue::fail(const std::string& message) const {
  throw DataError(fmt::format("{}: {}", path_, message));
}

bool JsonValue::contains(const std::string& key) const {
  if (!value_->is_object()) fail(fmt::format("expected an object, got {}", shown_json(*value_)));
  return value_->contains(key);
}

JsonValue JsonValue::at(const std::string& key) const {
  if (!contains(key)) throw DataError(fmt::format("{}.{}: expected this field, got none", path_, key));
  return {value_->at(key), fmt::format("{}.{}", path_, key)};
}

std::vector<std::pair<std::string, JsonValue>> JsonValue::items() const {
  if (!value_->is_object()) fail(fmt::format("expected an object, got {}", shown_json(*value_)));
  std::vector<std::pair<std::string, JsonValue>> items;
  for (const auto& [key, value] : value_->items())
    items.emplace_back(key, JsonValue(value, fmt::format("{}.{}", path_, key)));
  return items;
}

std::size_t JsonValue::size() const {
  if (!value_->is_array()) fail(fmt::format("expected a list, got {}", shown_json(*value_)));
  return value_->size();
}

JsonValue JsonValue::at(std::size_t index) const {
  if (index >= size()) fail(fmt::format("expected at least {} entries, got {}", index + 1, size()));
  return {(*value_)[index], fmt::format("{}[{}]", path_, index)};
}

std::vector<JsonValue> JsonValue::list() const {
  std::vector<JsonValue> list;
  list.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) list.push_back(at(i));
  return list;
}

}  // namespace widelimit
