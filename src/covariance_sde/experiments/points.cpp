#include "covariance_sde/experiments/points.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <set>
#include <utility>

#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/json/read_json.hpp"
#include "widelimit/json/shown_text.hpp"

namespace widelimit::covariance_sde {

namespace {

/// The list `name`, taken away; nothing may stand beside it that says the same.
std::vector<double> take_list(nlohmann::json& config, const char* name,
                              std::initializer_list<const char*> others) {
  if (!config.contains(name)) return {};
  FieldReader fields(config, "config");
  std::vector<double> values = fields.numbers(name);
  for (const char* other : others)
    if (fields.has(other))
      fields.fail(name, fmt::format("cannot be combined with {}; give one of them", other));
  config.erase(name);
  return values;
}

}  // namespace

std::vector<double> take_gammas(nlohmann::json& config) {
  std::vector<double> gammas = take_list(config, "gammas",
                                         {"gamma", "gamma_squared", "lambda", "gamma_feedforward",
                                          "gamma_squared_feedforward", "lambda_feedforward"});
  if (!gammas.empty()) config["gamma"] = gammas.front();
  return gammas;
}

std::vector<double> take_temperatures(nlohmann::json& config) {
  return take_list(config, "temperatures", {"temperature"});
}

std::string ListPoint::label() const {
  std::string text = network.value_or("");
  if (gamma) text += fmt::format("{}gamma {:g}", text.empty() ? "" : ", ", *gamma);
  if (temperature) text += fmt::format("{}temperature {:g}", text.empty() ? "" : ", ", *temperature);
  return text;
}

std::string ListPoint::named(const std::string& what) const {
  return label().empty() ? what : fmt::format("{} ({})", what, label());
}

std::vector<results::Column> ListPoint::columns() const {
  std::vector<results::Column> columns;
  if (network) columns.push_back({.name = "network", .quoted = true});
  if (gamma) columns.push_back({.name = "gamma"});
  if (temperature) columns.push_back({.name = "temperature"});
  return columns;
}

results::Table ListPoint::cells() const {
  std::vector<results::Column> cells = columns();
  std::size_t next = 0;
  if (network) cells[next++].texts = {*network};
  if (gamma) cells[next++].numbers = {*gamma};
  if (temperature) cells[next++].numbers = {*temperature};
  return results::Table(std::move(cells));
}

results::Table ListPoint::table(const std::vector<results::Column>& others) const {
  std::vector<results::Column> all = columns();
  all.insert(all.end(), others.begin(), others.end());
  return results::Table(std::move(all));
}

nlohmann::json ListPoint::json() const {
  nlohmann::json result = nlohmann::json::object();
  if (network) result["network"] = *network;
  if (gamma) result["gamma"] = *gamma;
  if (temperature) result["temperature"] = *temperature;
  return result;
}

namespace {

/// `names` is what the configuration calls its model or network.
void require_lists_have_use(const nlohmann::json& config) {
  const char* field = config.contains("network") ? "network" : "model";
  const auto place = config.find(field);
  if (place == config.end() || !place->is_string()) return;
  const std::string name = *place;
  const FieldReader fields(config, "config");
  if (config.contains("gammas") && name == "mlp")
    fields.fail("gammas", "an mlp has no residual weights: leave it out");
  const bool attends =
      name != "mlp" && name != "resnet" && name != "shaped_resnet" && !name.starts_with("unshaped");
  if (config.contains("temperatures") && !attends)
    fields.fail("temperatures", fmt::format("{} has no temperature: leave it out", name));
}

template <typename Value>
std::vector<std::optional<Value>> or_none(const std::vector<Value>& values) {
  if (values.empty()) return {std::nullopt};
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<ListPoint> read_points(const nlohmann::json& config) {
  require_lists_have_use(config);
  nlohmann::json rest = config;
  const std::vector<double> gammas = take_gammas(rest), temperatures = take_temperatures(rest);
  std::vector<ListPoint> points;
  for (const std::optional<double>& temperature : or_none(temperatures))
    for (const std::optional<double>& gamma : or_none(gammas)) {
      ListPoint point{gamma, temperature, rest};
      point.config.update(point.json());
      points.push_back(std::move(point));
    }
  return points;
}

namespace {

/// An entry of "networks" as an object with its "label".
nlohmann::json network_entry(const nlohmann::json& entry, const std::string& path) {
  nlohmann::json fields = entry.is_string() ? nlohmann::json{{"network", entry}} : entry;
  ConfigReader reader(fields, listed_network_fields(), path);
  const std::string label = reader.text("label", reader.text("network"));
  fields["label"] = label;
  return fields;
}

/// The configuration of one network: its own fields in the place of common ones.
nlohmann::json config_of_network(const nlohmann::json& common, nlohmann::json entry) {
  entry.erase("label");
  nlohmann::json config = common;
  // Either of these says what the residual weights are.
  const auto has_weights = [&](const char* end) {
    return entry.contains(std::string("gamma") + end) || entry.contains(std::string("gamma_squared") + end);
  };
  for (const char* end : {"", "_feedforward"})
    if (has_weights(end))
      for (const char* field : {"gamma", "gamma_squared", "lambda"}) config.erase(field + std::string(end));
  config.update(entry);
  return config;
}

}  // namespace

std::vector<ListPoint> read_network_points(const nlohmann::json& config) {
  if (!config.contains("networks")) return read_points(config);
  const FieldReader fields(config, "config");
  const nlohmann::json& entries = config.at("networks");
  if (!entries.is_array() || entries.empty())
    fields.fail("networks", fmt::format("expected a list of networks, got {}", shown_json(entries)));
  if (fields.has("network")) fields.fail("networks", "cannot be combined with network; give one of them");
  nlohmann::json common = config;
  common.erase("networks");
  std::vector<ListPoint> points;
  std::set<std::string> labels;
  for (std::size_t k = 0; k < entries.size(); ++k) {
    const std::string path = fmt::format("config.networks[{}]", k);
    const nlohmann::json entry = network_entry(entries[k], path);
    const std::string label = entry.at("label");
    if (!labels.insert(label).second)
      fields.fail("networks", fmt::format("\"{}\" appears twice; give each a label of its own", label));
    naming_errors(path, [&] {
      for (ListPoint& point : read_points(config_of_network(common, entry))) {
        point.network = label;
        points.push_back(std::move(point));
      }
    });
  }
  return points;
}

}  // namespace widelimit::covariance_sde
