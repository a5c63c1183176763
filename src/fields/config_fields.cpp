#include "widelimit/fields/config_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "widelimit/json/shown_text.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit {

using nlohmann::json;

json ConfigField::default_json() const {
  if (!values.is_checked()) return nullptr;
  json value = json::parse(default_value, nullptr, false);
  if (value.is_discarded()) value = default_value;
  return values.hold(value) ? value : json(nullptr);
}

std::string shown(double value) { return fmt::format("{}", value); }
std::string shown(Index value) { return fmt::format("{}", value); }
std::string shown(bool value) { return fmt::format("{}", value); }

ConfigFields joined_fields(const std::vector<ConfigFields>& parts) {
  ConfigFields all;
  for (const ConfigFields& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

ConfigFields without_fields(ConfigFields fields, const std::vector<std::string_view>& names) {
  std::erase_if(fields, [&](const ConfigField& field) { return std::ranges::count(names, field.name) > 0; });
  return fields;
}

const ConfigField* find_field(const ConfigFields& fields, std::string_view name) {
  const auto row = std::ranges::find_if(fields, [&](const ConfigField& field) { return name == field.name; });
  return row == fields.end() ? nullptr : &*row;
}

std::string config_fields_help(const ConfigFields& fields) {
  std::string text = "Configuration (fields without a default must be given):\n";
  for (const ConfigField& field : fields)
    fmt::format_to(std::back_inserter(text), "  {}: {}{}; {}\n", field.name, field.values.text(),
                   field.default_value.empty() ? "" : fmt::format(" [{}]", field.default_value),
                   field.meaning);
  return text;
}

void check_fields(const json& config, const ConfigFields& fields, const std::string& path) {
  const FieldReader reader(config, path);
  for (const auto& [name, value] : config.items()) {
    const ConfigField* field = find_field(fields, name);
    if (field == nullptr) {
      std::vector<std::string_view> known;
      for (const ConfigField& one : fields) known.emplace_back(one.name);
      reader.fail(name, fmt::format("unknown field; known are {}", fmt::join(known, ", ")));
    }
    if (!field->values.hold(value))
      reader.fail(name, fmt::format("expected {}, got {}", field->values.expected(), shown_json(value)));
  }
}

}  // namespace widelimit
