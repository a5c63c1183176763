#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/fields/config_reader.hpp"

/// Reading of the JSON configurations of `widelimit sde`; errors name the field, and the file once
/// naming_errors() has put it in front.
namespace widelimit::cli {

/// The parsed file. DataError if it cannot be opened or is not a JSON object.
[[nodiscard]] nlohmann::json read_sde_config(const std::filesystem::path& file);

/// The attention block of a model.
struct ModelAttention {
  covariance_sde::ResidualWeights residual;
  double temperature;
  Index heads;
};

struct SdeSetup {
  covariance_sde::SdeModel model;
  std::optional<ModelAttention> attention;
  Matrix<double> v0;
  covariance_sde::SimulationOptions options;
};

struct NetworkSetup {
  covariance_sde::NetworkSpec network;
  Matrix<double> v0;
  covariance_sde::NetworkOptions options;
  /// Why explicit weights were chosen where the configuration does not say; else empty.
  std::string why_explicit = {};
};

/// Each reads its fields from the configuration and leaves the rest unread; call finish() on the reader
/// afterwards.
[[nodiscard]] SdeSetup read_sde_setup(ConfigReader& fields);
/// Without what only sampling has.
[[nodiscard]] SdeSetup read_law_setup(ConfigReader& fields);
[[nodiscard]] NetworkSetup read_network_setup(ConfigReader& fields);

/// How the limit of a network is simulated beside it.
[[nodiscard]] covariance_sde::SimulationOptions read_limit_options(ConfigReader& fields,
                                                                   const NetworkSetup& setup);

/// The deterministic flow of the drift or, without a model, the commuting limit.
struct FlowSetup {
  std::optional<covariance_sde::SdeModel> model;
  covariance_sde::Shortcut shortcut = covariance_sde::Shortcut::unit;
  Matrix<double> v0;
  std::vector<double> times;
};
[[nodiscard]] FlowSetup read_flow_setup(ConfigReader& fields);

/// A model at one covariance.
struct CoefficientSetup {
  covariance_sde::SdeModel model;
  Matrix<double> v0;
};
[[nodiscard]] CoefficientSetup read_coefficient_setup(ConfigReader& fields);

/// Networks whose gradients are compared.
struct GradientSetup {
  struct Network {
    std::string label;
    covariance_sde::NetworkSpec network;
  };
  std::vector<Network> networks;
  Matrix<double> v0;
  covariance_sde::GradientOptions options;
};
[[nodiscard]] GradientSetup read_gradient_setup(ConfigReader& fields);

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
