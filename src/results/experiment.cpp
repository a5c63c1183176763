#include "widelimit/results/experiment.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::results {

const Experiment& Theory::experiment(std::string_view wanted) const {
  const auto found = std::ranges::find(experiments, wanted, &Experiment::name);
  if (found != experiments.end()) return *found;
  std::vector<std::string> names;
  for (const Experiment& one : experiments) names.push_back(one.name);
  throw ArgumentError(fmt::format("experiment: expected {}, got \"{}\"", fmt::join(names, ", "), wanted));
}

Results Theory::run(std::string_view wanted, const nlohmann::json& config, const Control& control) const {
  const Experiment& chosen = experiment(wanted);
  ConfigReader fields(config, chosen.fields_of != nullptr ? chosen.fields_of(config) : *chosen.fields);
  Results results = chosen.run(fields, control);
  results.origin.command = fmt::format("{} {}", name, wanted);
  // What was chosen is repeated by the origin, too.
  nlohmann::ordered_json configuration = config;
  if (results.origin.configuration.is_object()) configuration.update(results.origin.configuration);
  results.origin.configuration = std::move(configuration);
  return results;
}

double censored_median(std::vector<double> values) {
  std::ranges::sort(values, [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); });
  // One of the middle two that is missing makes the sum missing too.
  const std::size_t count = values.size();
  return count == 0 ? std::nan("") : (values[(count - 1) / 2] + values[count / 2]) / 2;
}

}  // namespace widelimit::results
