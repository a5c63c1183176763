#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/fields/field_values.hpp"

/// Tables of what a theory can be told. One row of one table makes the field of a configuration, its default, its line
/// of --help and of the page, the argument of the Python function, and the error.
namespace widelimit {

/// One field of a JSON configuration.
struct ConfigField {
  const char* name;
  FieldValues values;  ///< What it may be, e.g. "integer >= 1".
  /// Its default: a value, which readers take from here, or words about other fields; empty if it must be given.
  std::string default_value;
  const char* meaning;

  /// The default where it is a value of the field, else null.
  [[nodiscard]] nlohmann::json default_json() const;
};

using ConfigFields = std::vector<ConfigField>;

/// For finish() of a reader: of fields that are in the table but that nothing reads beside the others.
inline constexpr const char* unused_field = "has no meaning together with the other fields: leave it out";

/// A default that the library has.
[[nodiscard]] std::string shown(double value);
[[nodiscard]] std::string shown(Index value);
[[nodiscard]] std::string shown(bool value);
std::string shown(const char*) = delete;  // It would be a bool.

[[nodiscard]] ConfigFields joined_fields(const std::vector<ConfigFields>& parts);

/// The fields but those of these names.
[[nodiscard]] ConfigFields without_fields(ConfigFields fields, const std::vector<std::string_view>& names);

/// The row of a field, null if the table has none.
[[nodiscard]] const ConfigField* find_field(const ConfigFields& fields, std::string_view name);

/// "  name: values [default]; meaning", a line a field: what --help says.
[[nodiscard]] std::string config_fields_help(const ConfigFields& fields);

/// NetworkError "PATH.FIELD: expected ..., got ..." for the first value out of its range, and for fields that are not
/// in the table. `config` must be an object.
void check_fields(const nlohmann::json& config, const ConfigFields& fields, const std::string& path);

}  // namespace widelimit
