#include "cli/search_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>

#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

using PlainJson = nlohmann::json;

[[noreturn]] void fail(const std::string& spec, const std::string& message) {
  throw ArgumentError(fmt::format("--search '{}': {}", spec, message));
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

double number_of(const std::string& spec, const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end || text.empty())
    fail(spec, fmt::format("expected PATH=LOW:HIGH[:linear|log|integer] with numbers, got '{}'", text));
  return number;
}

gp::SearchScale scale_of(const std::string& spec, const std::string& word) {
  if (word == "linear") return gp::SearchScale::linear;
  if (word == "log") return gp::SearchScale::logarithmic;
  if (word == "integer") return gp::SearchScale::integer;
  fail(spec, fmt::format("expected linear, log or integer behind the bounds, got '{}'", word));
}

gp::SearchParameter parameter_of(const std::string& spec) {
  const std::size_t equals = spec.rfind('=');
  if (equals == std::string::npos || equals == 0)
    fail(spec, "expected PATH=LOW:HIGH[:linear|log|integer], there is no PATH=");
  const auto parts = split(spec.substr(equals + 1), ':');
  if (parts.size() < 2 || parts.size() > 3)
    fail(spec, "expected PATH=LOW:HIGH[:linear|log|integer], two bounds and perhaps a scale");
  return {spec.substr(0, equals), number_of(spec, parts[0]), number_of(spec, parts[1]),
          parts.size() == 3 ? scale_of(spec, parts[2]) : gp::SearchScale::linear};
}

/// "layers[0].weight_variance" as "/layers/0/weight_variance".
PlainJson::json_pointer place_of(const std::string& spec, const std::string& path) {
  PlainJson::json_pointer place;
  for (const std::string& field : split(path, '.')) {
    const auto parts = split(field, '[');
    if (parts.front().empty() && parts.size() == 1) fail(spec, "expected names between the dots of the path");
    if (!parts.front().empty()) place /= parts.front();
    for (std::size_t i = 1; i < parts.size(); ++i) {
      const std::string digits = parts[i].substr(0, parts[i].size() - 1);
      if (!parts[i].ends_with(']') || digits.empty() ||
          digits.find_first_not_of("0123456789") != std::string::npos || digits.size() > 6)
        fail(spec, fmt::format("expected [NUMBER] in the path, got '[{}'", parts[i]));
      place /= static_cast<std::size_t>(std::stoul(digits));
    }
  }
  return place;
}

std::string numbers_in(const PlainJson& value) {
  std::vector<std::string> names;
  for (const auto& [name, field] : value.items())
    if (field.is_number() || field.is_structured()) names.push_back(name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Throws unless the path leads to a number that takes values of this scale.
void require_number(const std::string& spec, const PlainJson& document, const PlainJson::json_pointer& place,
                    gp::SearchScale scale) {
  PlainJson::json_pointer known = place;
  while (!known.empty() && !document.contains(known)) known.pop_back();
  const PlainJson& value = document.at(known);
  if (known != place)
    fail(spec,
         fmt::format("the network has no such field; {} has {}", known.empty() ? "it" : known.to_string(),
                     value.is_structured() && !value.empty() ? numbers_in(value) : "none"));
  if (!value.is_number())
    fail(spec, fmt::format("expected a number there, the network has {}", value.dump()));
  if (value.is_number_integer() && scale != gp::SearchScale::integer)
    fail(spec, "the network has an integer there: write :integer behind the bounds");
}

}  // namespace

SearchSpace::SearchSpace(const Network& network, const std::vector<std::string>& specs)
    : document_(PlainJson::parse(to_json(network))) {
  for (const std::string& spec : specs) {
    parameters_.push_back(parameter_of(spec));
    const gp::SearchParameter& parameter = parameters_.back();
    places_.push_back(place_of(spec, parameter.name));
    require_number(spec, document_, places_.back(), parameter.scale);
    for (std::size_t i = 0; i + 1 < places_.size(); ++i)
      if (places_[i] == places_.back()) fail(spec, "this number is searched for already");
  }
}

Network SearchSpace::network_with(const std::vector<double>& values) const {
  PlainJson document = document_;
  for (std::size_t i = 0; i < values.size(); ++i) {
    PlainJson& number = document.at(places_[i]);
    if (number.is_number_integer())
      number = static_cast<std::int64_t>(std::llround(values[i]));
    else
      number = values[i];
  }
  return parse_network(document.dump());
}

}  // namespace widelimit::cli
