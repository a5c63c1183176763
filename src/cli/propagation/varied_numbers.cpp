#include "cli/propagation/varied_numbers.hpp"

#include <fmt/format.h>

#include "cli/options/counts.hpp"
#include "cli/output/text_parts.hpp"
#include "widelimit/error.hpp"
#include "widelimit/json/read_json.hpp"

namespace widelimit::cli {
namespace {

using propagation::VariedNumber;

[[noreturn]] void fail_spec(const std::string& spec, const std::string& message) {
  throw ArgumentError(fmt::format("--vary '{}': expected PATH=FROM:TO:COUNT[:linear|log]{}", spec, message));
}

VariedNumber number_in(const std::string& spec) {
  const std::size_t equals = spec.rfind('=');
  if (equals == std::string::npos || equals == 0) fail_spec(spec, ", there is no PATH=");
  const auto parts = split(spec.substr(equals + 1), ':');
  if (parts.size() < 3 || parts.size() > 4) fail_spec(spec, ", two bounds, a count and perhaps a scale");
  double numbers[3] = {0, 0, 0};
  for (std::size_t k = 0; k < 3; ++k) {
    const auto number = whole_text_number(parts[k]);
    if (!number) fail_spec(spec, fmt::format(" with numbers, got '{}'", parts[k]));
    numbers[k] = *number;
  }
  if (parts.size() == 4 && parts[3] != "linear" && parts[3] != "log")
    fail_spec(spec, fmt::format(", linear or log after the count, got '{}'", parts[3]));
  return naming_errors("--vary", [&] {
    return propagation::evenly_varied(spec.substr(0, equals), numbers[0], numbers[1],
                                      checked_points(numbers[2], 1, 1e5, "COUNT"),
                                      parts.size() == 4 && parts[3] == "log");
  });
}

}  // namespace

propagation::BlockVariation variation_of(const Network& network, const std::vector<std::string>& specs) {
  std::vector<VariedNumber> numbers;
  for (const std::string& spec : specs) numbers.push_back(number_in(spec));
  return naming_errors("--vary", [&] { return propagation::BlockVariation(network, std::move(numbers)); });
}

}  // namespace widelimit::cli
