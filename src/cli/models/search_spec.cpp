#include "cli/models/search_spec.hpp"

#include <fmt/format.h>

#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::cli {
namespace {

[[noreturn]] void fail(const std::string& spec, const std::string& message) {
  throw ArgumentError(fmt::format("--search '{}': {}", spec, message));
}

double number_of(const std::string& spec, const std::string& text) {
  const auto number = whole_text_number(text);
  if (!number)
    fail(spec, fmt::format("expected PATH=LOW:HIGH[:linear|log|integer] with numbers, got '{}'", text));
  return *number;
}

gp::SearchScale scale_of(const std::string& spec, const std::string& word) {
  if (word == "linear") return gp::SearchScale::linear;
  if (word == "log") return gp::SearchScale::logarithmic;
  if (word == "integer") return gp::SearchScale::integer;
  fail(spec, fmt::format("expected linear, log or integer after the bounds, got '{}'", word));
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

}  // namespace

SearchSpace::SearchSpace(const Network& network, const std::vector<std::string>& specs)
    : document_(nlohmann::json::parse(to_json(network))) {
  for (const std::string& spec : specs) {
    parameters_.push_back(parameter_of(spec));
    const gp::SearchParameter& parameter = parameters_.back();
    numbers_.emplace_back(document_, parameter.name, fmt::format("--search '{}'", spec));
    if (numbers_.back().is_integer() && parameter.scale != gp::SearchScale::integer)
      fail(spec, "the network has an integer there: write :integer after the bounds");
    for (std::size_t i = 0; i + 1 < numbers_.size(); ++i)
      if (numbers_[i] == numbers_.back()) fail(spec, "this number is searched for already");
  }
}

Network SearchSpace::network_with(const std::vector<double>& values) const {
  return widelimit::network_with(document_, numbers_, values);
}

}  // namespace widelimit::cli
