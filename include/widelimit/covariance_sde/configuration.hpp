#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/gradient_norms.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/fields/config_reader.hpp"

/// What the commands of `widelimit sde`, and the Python functions that do the same, can be told: one table of fields a
/// command, and the reading of JSON by it. Errors name the field.
namespace widelimit::covariance_sde {

/// The most tokens of `coefficients`, whose tables have tokens^4 entries.
inline constexpr Index most_coefficient_tokens = 24;

/// All fields of a command. "output of networks": of `output` where it has a network. ArgumentError for an unknown one.
[[nodiscard]] const ConfigFields& command_fields(std::string_view command);

/// Of an entry of the list `networks`: of a network but its width, and its label.
[[nodiscard]] const ConfigFields& listed_network_fields();

struct SdeSetup {
  SdeModel model;
  Matrix<double> v0;
  SimulationOptions options;
};

struct NetworkSetup {
  NetworkSpec network;
  Matrix<double> v0;
  NetworkOptions options;
  /// Why explicit weights were chosen where the configuration does not say; else empty.
  std::string why_explicit = {};
};

/// The deterministic flow of the drift or, without a model, the commuting limit.
struct FlowSetup {
  std::optional<SdeModel> model;
  Shortcut shortcut = Shortcut::unit;
  Matrix<double> v0;
  std::vector<double> times;
};

/// A model at one covariance.
struct CoefficientSetup {
  SdeModel model;
  Matrix<double> v0;
};

/// Networks whose gradients are compared.
struct GradientSetup {
  struct Network {
    std::string label;
    NetworkSpec network;
  };
  std::vector<Network> networks;
  Matrix<double> v0;
  GradientOptions options;
};

/// Each reads its fields and leaves the rest unread; call finish(unused_field) on the reader afterwards.
[[nodiscard]] SdeSetup read_sde_setup(ConfigReader& fields);
/// Without what only sampling has.
[[nodiscard]] SdeSetup read_law_setup(ConfigReader& fields);
[[nodiscard]] NetworkSetup read_network_setup(ConfigReader& fields);
[[nodiscard]] FlowSetup read_flow_setup(ConfigReader& fields);
[[nodiscard]] CoefficientSetup read_coefficient_setup(ConfigReader& fields);
[[nodiscard]] GradientSetup read_gradient_setup(ConfigReader& fields);

/// How the limit of a network is simulated beside it.
[[nodiscard]] SimulationOptions read_limit_options(ConfigReader& fields, const NetworkSetup& setup);

/// Parts of these, for functions that have the rest as values. A model has "model" and the fields of its blocks; a
/// start "V0", or "tokens" of equal "variance" and correlation "rho0".
[[nodiscard]] SdeModel read_model(ConfigReader& fields);
[[nodiscard]] NetworkSpec read_network(ConfigReader& fields);
[[nodiscard]] AttentionMask read_mask(ConfigReader& fields);
[[nodiscard]] Matrix<double> read_start(ConfigReader& fields);
[[nodiscard]] std::vector<double> read_times(ConfigReader& fields);
/// `attends`: whether the model may have a "step_control", which is for attention.
[[nodiscard]] SimulationOptions read_simulation(ConfigReader& fields, const SdeModel& model, bool attends,
                                                const Matrix<double>& v0);
[[nodiscard]] NetworkSetup read_sampling(ConfigReader& fields, const NetworkSpec& network, Matrix<double> v0);
[[nodiscard]] GradientOptions read_gradient_options(ConfigReader& fields);

}  // namespace widelimit::covariance_sde
