#include "bounded_json.hpp"

#include <algorithm>
#include <set>
#include <string_view>

#include "widelimit/json/read_json.hpp"

namespace widelimit::fuzz {
namespace {

using nlohmann::json;

constexpr std::int64_t sizes_below = 7;

bool is_time(const std::string& name) {
  static const std::set<std::string> names{"tau", "T", "t", "times", "horizon", "T_fraction"};
  return names.contains(name);
}

bool is_step(const std::string& name) {
  static const std::set<std::string> names{"step", "max_step", "gamma", "step_control"};
  return names.contains(name);
}

void bound(json& value, const std::string& name) {
  if (value.is_number_float()) {
    const double number = value;
    if (is_time(name)) value = std::min(number, 1.0);
    if (is_step(name) && number > 0) value = std::max(number, 0.1);
  } else if (value.is_number_integer()) {
    if (value > sizes_below) value = value.get<std::int64_t>() % sizes_below;
    if (is_time(name) && value > 1) value = 1;
  }
  if (value.is_array())
    for (json& entry : value) bound(entry, name);
  if (value.is_object())
    for (const auto& [key, entry] : value.items()) bound(entry, key);
}

}  // namespace

json bounded_json(Bytes bytes) {
  json document = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "fuzz");
  bound(document, "");
  return document;
}

void set_default(json& object, const std::string& field, const json& value) {
  if (object.is_object() && !object.contains(field)) object[field] = value;
}

}  // namespace widelimit::fuzz
