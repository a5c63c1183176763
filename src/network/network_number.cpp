#include "network/network_number.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "json/dotted_path.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

using Pointer = nlohmann::json::json_pointer;

[[noreturn]] void fail_at(const std::string& where, const std::string& message) {
  throw ArgumentError(fmt::format("{}: {}", where, message));
}

/// The parts of a text between separators. A text without separators is one part.
std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char character : text)
    if (character == separator)
      parts.emplace_back();
    else
      parts.back() += character;
  return parts;
}

/// The JSON pointer of a path: "/layers/0/weight_variance" for "layers[0].weight_variance".
Pointer place_of(const std::string& path, const std::string& where) {
  Pointer place;
  for (const std::string& field : parts_of(path, '.')) {
    const auto parts = parts_of(field, '[');
    // A field is "name", "name[i]" or, for an array within an array, "name[i][j]".
    if (parts.front().empty() && parts.size() == 1)
      fail_at(where, "expected names between the dots of the path");
    if (!parts.front().empty()) place /= parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      // At most six digits, so that the number fits an integer. Networks have at most most_layers layers.
      const std::string digits = parts[i].substr(0, parts[i].size() - 1);
      if (!parts[i].ends_with(']') || digits.empty() ||
          digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 6)
        fail_at(where, fmt::format("expected [NUMBER] in the path, got '[{}'", parts[i]));
      place /= static_cast<std::size_t>(std::stoul(digits));
    }
  }
  return place;
}

/// The names that a path could go on with, for messages.
std::string numbers_in(const nlohmann::json& value) {
  if (value.is_array()) return fmt::format("{} entries, counted from 0", value.size());
  std::vector<std::string> names;
  if (value.is_structured())
    for (const auto& [name, field] : value.items())
      if (field.is_number() || field.is_structured()) names.push_back(name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

NetworkNumber::NetworkNumber(const nlohmann::json& document, const std::string& path,
                             const std::string& where)
    : place_(place_of(path, where)) {
  // The longest part of the path that exists, so that the message can tell what is there.
  Pointer known = place_;
  while (!known.empty() && !document.contains(known)) known.pop_back();
  const nlohmann::json& value = document.at(known);
  if (known != place_)
    fail_at(where, fmt::format("the network has no such field; {} has {}",
                               known.empty() ? "it" : dotted_path(known.to_string()), numbers_in(value)));
  if (!value.is_number())
    fail_at(where, fmt::format("expected a number there, the network has {}", value.dump()));
  is_integer_ = value.is_number_integer();
}

void NetworkNumber::set(nlohmann::json& document, double value) const {
  nlohmann::json& number = document.at(place_);
  if (is_integer_)
    number = static_cast<std::int64_t>(std::llround(value));
  else
    number = value;
}

nlohmann::json with_values(nlohmann::json document, const std::vector<NetworkNumber>& numbers,
                           const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) numbers[i].set(document, values[i]);
  return document;
}

}  // namespace widelimit
