#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "widelimit/fields/config_fields.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit {

/// Reads the fields of one object by their table; both must outlive it. A field that is not given has the default of
/// its row; where that is words about other fields, the reader gives the value. Errors and account as of FieldReader.
class ConfigReader : public FieldReader {
 public:
  /// Checks all values: see check_fields().
  ConfigReader(const nlohmann::json& config, const ConfigFields& fields, std::string path = "config");

  double number(std::string_view field, std::optional<double> computed = {});
  Index integer(std::string_view field, std::optional<Index> computed = {});
  bool boolean(std::string_view field);
  std::string text(std::string_view field, std::optional<std::string> computed = {});

  /// The value whose word the field holds.
  template <typename Value>
  Value choice(std::string_view field, const Choices<Value>& known,
               std::type_identity_t<std::optional<Value>> computed = {}) {
    if (computed && !has(field)) return *computed;
    const std::string word = text(field);
    for (const auto& [name, value] : known)
      if (name == word) return value;
    fail(field, "a word that the table of fields does not have");
  }

  /// Fails for `field` if neither it nor any of `others`, which `or_else` names, is given: "expected this field, or
  /// `or_else`, got none".
  void require_one(std::string_view field, std::initializer_list<std::string_view> others,
                   std::string_view or_else) const;
  /// Fails for `field` unless exactly one of the two is given.
  void require_either(std::string_view field, std::string_view other) const;

  /// All of it, of which nothing counts as read.
  [[nodiscard]] const nlohmann::json& config() const { return config_; }
  /// Their table.
  [[nodiscard]] const ConfigFields& fields() const { return fields_; }

  /// Whether the table has the field.
  [[nodiscard]] bool knows(std::string_view field) const;
  /// The default of the field's row where it is a value, else null.
  [[nodiscard]] nlohmann::json default_of(std::string_view field) const;

 private:
  const nlohmann::json& config_;
  const ConfigFields& fields_;
};

}  // namespace widelimit
