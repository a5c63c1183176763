#pragma once

#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/json/shown_text.hpp"

/// Checked access to JSON: every conversion says whether the value was of the kind that is wanted, none is
/// narrowed in silence.
namespace widelimit {

/// What messages call a kind, one of them and several, and the conversion: false if the value is of another
/// kind or out of range.
template <typename T>
struct JsonKind;

template <>
struct JsonKind<double> {
  static std::string one() { return "a number"; }
  static std::string several() { return "numbers"; }
  static bool read(const nlohmann::json& value, double& target);
};

template <>
struct JsonKind<Index> {
  static std::string one() { return "an integer"; }
  static std::string several() { return "integers"; }
  static bool read(const nlohmann::json& value, Index& target);
};

template <>
struct JsonKind<int> : JsonKind<Index> {
  static bool read(const nlohmann::json& value, int& target);
};

template <>
struct JsonKind<bool> {
  static std::string one() { return "true or false"; }
  static std::string several() { return "values"; }
  static bool read(const nlohmann::json& value, bool& target);
};

template <>
struct JsonKind<std::string> {
  static std::string one() { return "a string"; }
  static std::string several() { return "strings"; }
  static bool read(const nlohmann::json& value, std::string& target);
};

template <typename T>
struct JsonKind<std::vector<T>> {
  static std::string one() { return "a list of " + JsonKind<T>::several(); }
  static std::string several() { return "lists of " + JsonKind<T>::several(); }
  static bool read(const nlohmann::json& value, std::vector<T>& target) {
    if (!value.is_array()) return false;
    for (const nlohmann::json& entry : value) {
      T item{};
      if (!JsonKind<T>::read(entry, item)) return false;
      target.push_back(std::move(item));
    }
    return true;
  }
};

template <typename T>
concept JsonReadable = requires(const nlohmann::json& value, T& target) {
  { JsonKind<T>::read(value, target) } -> std::same_as<bool>;
};

/// "expected a number, got "2"".
template <JsonReadable T>
[[nodiscard]] std::string wrong_kind(const nlohmann::json& value) {
  return "expected " + JsonKind<T>::one() + ", got " + shown_json(value);
}

/// A value and where it stands in its document. Errors are DataErrors "PATH: expected ..., got ...". Refers
/// to the document, which must outlive it.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& value, std::string path) : value_{&value}, path_{std::move(path)} {}

  [[nodiscard]] const nlohmann::json& raw() const { return *value_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[noreturn]] void fail(const std::string& message) const;

  /// Members of an object. DataError where the value is none, and from at() where the member is missing.
  [[nodiscard]] bool contains(const std::string& key) const;
  [[nodiscard]] JsonValue at(const std::string& key) const;
  [[nodiscard]] std::vector<std::pair<std::string, JsonValue>> items() const;
  /// The field, or `otherwise` where there is none.
  template <JsonReadable T>
  [[nodiscard]] T value(const std::string& key, T otherwise) const {
    return contains(key) ? at(key).get<T>() : otherwise;
  }

  /// Entries of a list. DataError where the value is none, and from at() and front() where it is too short.
  [[nodiscard]] std::size_t size() const;
  [[nodiscard]] JsonValue at(std::size_t index) const;
  [[nodiscard]] JsonValue front() const { return at(std::size_t{0}); }
  [[nodiscard]] std::vector<JsonValue> list() const;

  template <JsonReadable T>
  [[nodiscard]] T get() const {
    T result{};
    if (!JsonKind<T>::read(*value_, result)) fail(wrong_kind<T>(*value_));
    return result;
  }
  template <JsonReadable T>
  operator T() const {  // NOLINT(google-explicit-constructor): a field is read by what it is assigned to.
    return get<T>();
  }
  friend bool operator==(const JsonValue& value, const char* text) { return *value.value_ == text; }
  friend bool operator==(const JsonValue& value, double number) { return *value.value_ == number; }

 private:
  const nlohmann::json* value_;
  std::string path_;
};

}  // namespace widelimit
