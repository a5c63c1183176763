#pragma once

#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "widelimit/network/field_reader.hpp"

namespace widelimit::cli {

/// The words that stand for the values of an enumeration.
template <typename Value>
using Choices = std::vector<std::pair<std::string, Value>>;

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
  template <typename Value>
  static FieldValues words(const Choices<Value>& choices) {
    std::vector<std::string> known;
    for (const auto& [word, value] : choices) known.push_back(word);
    return words(std::move(known));
  }

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
  [[nodiscard]] bool hold(const nlohmann::json& value) const { return !hold_ || hold_(value); }
  /// False for words alone.
  [[nodiscard]] bool is_checked() const { return static_cast<bool>(hold_); }

 private:
  using Check = std::function<bool(const nlohmann::json&)>;
  FieldValues(std::string text, std::string expected, Check hold);

  std::string text_, expected_;
  Check hold_;
};

/// One field of a JSON configuration.
struct ConfigField {
  const char* name;
  FieldValues values;  ///< What it may be, e.g. "integer >= 1".
  /// Its default: a value, which readers take from here, or words about other fields; empty if it must be given.
  std::string default_value;
  const char* meaning;
};

using ConfigFields = std::vector<ConfigField>;

/// A default that the library has.
template <typename T>
std::string shown(T value) {
  return fmt::format("{}", value);
}

[[nodiscard]] ConfigFields joined_fields(const std::vector<ConfigFields>& parts);

/// "  name: values [default], meaning", a line a field: what --help says.
[[nodiscard]] std::string config_fields_help(const ConfigFields& fields);

/// NetworkError "PATH.FIELD: expected ..., got ..." for the first value out of its range, and for fields that are not
/// in the table. `config` must be an object.
void check_fields(const nlohmann::json& config, const ConfigFields& fields, const std::string& path);

/// Reads the fields of one object by their table, which must outlive it. A field that is not given has the default of
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

  /// Whether the table has the field.
  [[nodiscard]] bool knows(std::string_view field) const;
  /// The default of the field's row where it is a value, else null.
  [[nodiscard]] nlohmann::json default_of(std::string_view field) const;

 private:
  const ConfigFields& fields_;
};

}  // namespace widelimit::cli
