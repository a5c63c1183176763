#pragma once

#include <optional>
#include <string>
#include <vector>

/// How the fields of a table write numbers.
namespace widelimit::data {

/// Points or commas, and what stands around the digits.
struct NumberFormat {
  char decimal = '.';  ///< '.' or ','. With a comma a point is no part of a number.
  std::vector<std::string>
      stripped;  ///< Taken out of fields before they are read: units, groups of thousands.

  /// The number that a field holds, ignoring blanks around it; nothing if it holds something else, or a number that
  /// beyond_double(). The minus of typesetters (U+2212) is one.
  [[nodiscard]] std::optional<double> number_in(const std::string& field) const;

  /// Whether a field holds a number that double cannot hold: more than 1.8e308, or less than 4.9e-324 and not 0.
  [[nodiscard]] bool beyond_double(const std::string& field) const;
};

/// The same of numbers as programs write them.
[[nodiscard]] std::optional<double> number_in_field(const std::string& field);

}  // namespace widelimit::data
