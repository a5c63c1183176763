#include "cli/models/search_spec.hpp"

#include <fmt/format.h>

#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

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

std::vector<gp::SearchParameter> parameters_of(const std::vector<std::string>& specs) {
  std::vector<gp::SearchParameter> parameters;
  parameters.reserve(specs.size());
  for (const std::string& spec : specs) parameters.push_back(parameter_of(spec));
  return parameters;
}

NetworkNumbers numbers_of(const Network& network, const std::vector<gp::SearchParameter>& parameters) {
  std::vector<std::string> paths;
  paths.reserve(parameters.size());
  for (const gp::SearchParameter& parameter : parameters) paths.push_back(parameter.name);
  return naming_errors("--search", [&] { return NetworkNumbers(network, paths, IntegerNumbers::rounded); });
}

}  // namespace

SearchSpace::SearchSpace(const Network& network, const std::vector<std::string>& specs)
    : parameters_{parameters_of(specs)}, numbers_{numbers_of(network, parameters_)} {
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (numbers_.is_integer(i) && parameters_[i].scale != gp::SearchScale::integer)
      fail(specs[i], "the network has an integer there: write :integer after the bounds");
}

}  // namespace widelimit::cli
