#pragma once

#include <functional>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "widelimit/network/shape.hpp"

namespace widelimit::cli {

/// What a field may hold: what --help and the documentation say of it is what check_fields() checks.
class FieldValues {
 public:
  /// Words alone: what the field holds is checked where it is read.
  FieldValues(const char* text);  // NOLINT(google-explicit-constructor): most fields of a table are words

  static FieldValues number();
  static FieldValues above(double bound);
  static FieldValues at_least(double bound);
  static FieldValues within(double from, double to);
  static FieldValues zero_or_at_least(double bound);
  static FieldValues integer(Index from, Index to);
  static FieldValues integer_at_least(Index from);
  static FieldValues boolean();
  static FieldValues words(std::vector<std::string> known);

  /// A list of at least one of these.
  [[nodiscard]] FieldValues list() const;
  /// The same, none of them twice.
  [[nodiscard]] FieldValues different_list() const;
  /// A list of at least one of these numbers, each greater than the one before it.
  [[nodiscard]] FieldValues increasing_list() const;
  /// The same check under other words, e.g. for a bound that another field sets.
  [[nodiscard]] FieldValues said(std::string text) const;

  [[nodiscard]] const std::string& text() const { return text_; }
  /// "an integer >= 1": what messages expect.
  [[nodiscard]] const std::string& expected() const { return expected_; }
  [[nodiscard]] bool hold(const nlohmann::json& value) const { return hold_(value); }

 private:
  using Check = std::function<bool(const nlohmann::json&)>;
  FieldValues(std::string text, std::string expected, Check hold);

  std::string text_, expected_;
  Check hold_;
};

/// One field of a JSON configuration.
struct ConfigField {
  const char* name;
  FieldValues values;     ///< What it may be, e.g. "integer >= 1".
  const char* otherwise;  ///< Its default; empty if it must be given.
  const char* meaning;
};

using ConfigFields = std::vector<ConfigField>;

[[nodiscard]] ConfigFields joined_fields(const std::vector<ConfigFields>& parts);

/// "  name: values [default], meaning", a line a field: what --help says.
[[nodiscard]] std::string config_fields_help(const ConfigFields& fields);

/// NetworkError "PATH.FIELD: expected ..., got ..." for the first value out of its range, and for fields that are not
/// in the table. `config` must be an object.
void check_fields(const nlohmann::json& config, const ConfigFields& fields, const std::string& path);

}  // namespace widelimit::cli
