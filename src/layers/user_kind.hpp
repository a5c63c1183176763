#pragma once

#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace widelimit::layers {

/// Throws ArgumentError for an empty kind, and for one that is a kind of the library up to case and blanks.
void check_user_kind(const std::string& kind);

/// The name of a layer of a user's own, and its parameters as files write them.
class UserKind {
 public:
  /// Throws ArgumentError for an empty kind, for a kind of the library, and for parameters that are not an object or
  /// have a member "layer".
  UserKind(std::string kind, std::optional<nlohmann::ordered_json> parameters,
           const std::shared_ptr<const void>& object);

  [[nodiscard]] const std::string& name() const { return name_; }

  /// The parameters. Without parameters, a number stands for them in prints and comparisons: of those of its kind, the
  /// how manyth `object` is that a layer was made of. Layers that share the object share the number.
  [[nodiscard]] nlohmann::ordered_json fields(const char* what) const;

  /// Throws NetworkError if there are no parameters. Whether the kind has a reader is asked where files are written.
  void check_writable(const std::string& path) const;

 private:
  std::string name_;
  std::optional<nlohmann::ordered_json> parameters_;
  std::size_t number_;
};

}  // namespace widelimit::layers
