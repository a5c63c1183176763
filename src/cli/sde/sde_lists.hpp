#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

/// The configurations of `widelimit sde`, and the lists in them, which stand for several configurations.
namespace widelimit::cli {

/// The parsed file. DataError if it cannot be opened or is not a JSON object.
[[nodiscard]] nlohmann::json read_sde_config(const std::filesystem::path& file);

/// One point of the lists "networks", "gammas" and "temperatures": what it has of them, and the configuration with
/// these in place of the lists.
struct SdePoint {
  std::optional<double> gamma, temperature;
  nlohmann::json config;
  std::optional<std::string> network = {};  ///< The label of its entry of "networks".

  /// "mlp, gamma 0.5, temperature 2"; empty without lists.
  [[nodiscard]] std::string label() const;
  /// "mlp,0.5,2,": the first cells of its rows in tables, under "network,gamma,temperature,".
  [[nodiscard]] std::string cells() const;
  [[nodiscard]] std::string columns() const;
  /// {"gamma": 0.5, "temperature": 2}, an object without what has no list.
  [[nodiscard]] nlohmann::json json() const;
};

/// The grid of both lists, temperature by temperature; one point, the configuration itself, where there are none.
/// NetworkError for lists that the model or network, by its name, has no use for.
[[nodiscard]] std::vector<SdePoint> read_sde_points(const nlohmann::json& config);

/// The same, network by network, where "networks" is a list of names, or of objects with fields of a network and a
/// label; without it read_sde_points(). NetworkError for entries of one label and for "network" beside the list.
[[nodiscard]] std::vector<SdePoint> read_network_points(const nlohmann::json& config);

/// The list "gammas", replaced in the configuration by its first as "gamma"; empty if there is none. The same of
/// "temperatures" and "temperature".
[[nodiscard]] std::vector<double> take_gammas(nlohmann::json& config);
[[nodiscard]] std::vector<double> take_temperatures(nlohmann::json& config);

}  // namespace widelimit::cli
