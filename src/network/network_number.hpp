#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace widelimit {

/// The place of a number in a network file, given by a path such as "layers[0].weight_variance".
class NetworkNumber {
 public:
  /// Throws ArgumentError, with `where` (what asks for the path) in front, unless the path leads to a number of the
  /// document.
  NetworkNumber(const nlohmann::json& document, const std::string& path, const std::string& where);

  [[nodiscard]] bool is_integer() const { return is_integer_; }
  [[nodiscard]] double in(const nlohmann::json& document) const { return document.at(place_).get<double>(); }

  /// Rounds to the nearest integer where the document has an integer.
  void set(nlohmann::json& document, double value) const;

  friend bool operator==(const NetworkNumber&, const NetworkNumber&) = default;

 private:
  nlohmann::json::json_pointer place_;
  bool is_integer_;
};

/// The document with `values` in the places of `numbers`, one for each.
[[nodiscard]] nlohmann::json with_values(nlohmann::json document, const std::vector<NetworkNumber>& numbers,
                                         const std::vector<double>& values);

}  // namespace widelimit
