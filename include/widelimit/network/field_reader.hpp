#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/shape.hpp"

namespace widelimit {

/// Reads the fields of one JSON object and remembers which ones, so that missing, unknown and wrong fields
/// are errors that name their path (`layers[3].filter`). All functions throw NetworkError.
class FieldReader {
 public:
  /// `object` must outlive the reader. `path` precedes field names in messages.
  FieldReader(const nlohmann::json& object, std::string path);

  /// The place of the object in its file, e.g. `layers[3]`.
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Whether the object has the field; does not mark it as read.
  [[nodiscard]] bool has(std::string_view field) const;

  /// The value of a field: a number that double holds, an integer that Index holds, true or false, a string, or a list
  /// of them. A missing field has the value of `fallback`; without one it is required.
  double number(std::string_view field, std::optional<double> fallback = std::nullopt);
  Index integer(std::string_view field, std::optional<Index> fallback = std::nullopt);
  bool boolean(std::string_view field, std::optional<bool> fallback = std::nullopt);
  std::string text(std::string_view field, std::optional<std::string> fallback = std::nullopt);
  std::vector<double> numbers(std::string_view field);
  std::vector<Index> integers(std::string_view field,
                              std::optional<std::vector<Index>> fallback = std::nullopt);
  std::vector<std::string> texts(std::string_view field,
                                 std::optional<std::vector<std::string>> fallback = std::nullopt);

  /// One of the given words.
  std::string choice(std::string_view field, std::initializer_list<std::string_view> words,
                     std::optional<std::string> fallback = std::nullopt);

  /// The raw value (include <nlohmann/json.hpp>); marks the field as read.
  const nlohmann::json& value(std::string_view field);

  /// The list of layers in `field`, each by its registered reader.
  Layers layers(std::string_view field);

  /// Throws NetworkError("PATH.FIELD: message") if the object has a field that nothing has read.
  void finish(const std::string& message = "unknown field") const;

  /// Throws NetworkError("PATH.field: message").
  [[noreturn]] void fail(std::string_view field, const std::string& message) const;

 private:
  template <typename T>
  T converted(std::string_view field, std::optional<T> fallback);

  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string, std::less<>> read_;
};

}  // namespace widelimit
