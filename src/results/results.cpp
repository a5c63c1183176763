#include "widelimit/results/results.hpp"

#include <fmt/format.h>

#include <cmath>

#include "widelimit/version.hpp"

namespace widelimit::results {

using nlohmann::json;

nlohmann::ordered_json origin_json(const Origin& origin) {
  nlohmann::ordered_json json{
      {"widelimit", version}, {"command", origin.command}, {"configuration", origin.configuration}};
  if (origin.seed) json["seed"] = *origin.seed;
  return json;
}

std::string origin_comment(const Origin& origin) {
  std::string text = fmt::format("# widelimit {}, {}\n# configuration: {}\n", version, origin.command,
                                 origin.configuration.dump());
  if (origin.seed) text += fmt::format("# seed: {}\n", *origin.seed);
  return text;
}

json estimate_json(const numerics::Estimate& estimate) {
  return {{"value", estimate.value}, {"standard_error", estimate.standard_error}};
}

namespace {

/// How many numbers there are in a part of the results, and how many of them do not exist.
struct Missing {
  Index numbers = 0, missing = 0;
  void see(double number) {
    ++numbers;
    if (!std::isfinite(number)) ++missing;
  }
  void see(const json& part) {
    if (part.is_number_float())
      see(part.get<double>());
    else if (part.is_structured())
      for (const json& inner : part) see(inner);
  }
};

}  // namespace

std::vector<std::string> note_missing(Results& results) {
  std::vector<std::string> warnings;
  const auto note = [&](const std::string& name, const Missing& found) {
    if (found.missing == 0 || results.notes.contains(name)) return;
    results.notes[name] = found.numbers == 1 ? "no finite number came out"
                                             : fmt::format("no finite number came out in {} of {} places",
                                                           found.missing, found.numbers);
    warnings.push_back(fmt::format("{}: {}", name, results.notes[name]));
  };
  for (const Column& column : results.table.columns())
    for (std::size_t k = 0; column.in_files && column.texts.empty() && k < column.width(); ++k) {
      Missing found;
      for (std::size_t at = k; at < column.numbers.size(); at += column.width())
        found.see(column.numbers[at]);
      note(column.entry(k), found);
    }
  for (const auto& [name, part] : results.summary.items()) {
    Missing found;
    found.see(part);
    note(name, found);
  }
  if (!results.notes.empty()) results.summary["notes"] = results.notes;
  return warnings;
}

}  // namespace widelimit::results
