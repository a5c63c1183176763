#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/results/table.hpp"

/// The lists in configurations, which stand for several configurations.
namespace widelimit::covariance_sde {

/// One point of the lists "networks", "gammas" and "temperatures": what it has of them, and the configuration with
/// these in place of the lists.
struct ListPoint {
  std::optional<double> gamma, temperature;
  nlohmann::json config;
  std::optional<std::string> network = {};  ///< The label of its entry of "networks".

  /// "mlp, gamma 0.5, temperature 2"; empty without lists.
  [[nodiscard]] std::string label() const;
  /// "paths", or "paths (gamma 0.5)".
  [[nodiscard]] std::string named(const std::string& what) const;
  /// The first columns of its tables, and their cells.
  [[nodiscard]] std::vector<results::Column> columns() const;
  [[nodiscard]] results::Table cells() const;
  /// A table whose first columns are these.
  [[nodiscard]] results::Table table(const std::vector<results::Column>& others) const;
  /// {"gamma": 0.5, "temperature": 2}, an object without what has no list.
  [[nodiscard]] nlohmann::json json() const;
};

/// The grid of both lists, temperature by temperature; one point, the configuration itself, where there are none.
/// NetworkError for lists that the model or network, by its name, has no use for.
[[nodiscard]] std::vector<ListPoint> read_points(const nlohmann::json& config);

/// The same, network by network, where "networks" is a list of names, or of objects with fields of a network and a
/// label; without it read_points(). NetworkError for entries of one label and for "network" beside the list.
[[nodiscard]] std::vector<ListPoint> read_network_points(const nlohmann::json& config);

/// The list "gammas", replaced in the configuration by its first as "gamma"; empty if there is none. The same of
/// "temperatures" and "temperature".
[[nodiscard]] std::vector<double> take_gammas(nlohmann::json& config);
[[nodiscard]] std::vector<double> take_temperatures(nlohmann::json& config);

}  // namespace widelimit::covariance_sde
