#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "widelimit/covariance_sde/deterministic_limit.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/fields/config_fields.hpp"

namespace widelimit::cli {

/// The words of enumerations in configurations.
inline const Choices<AttentionMask> masks{{"full", AttentionMask::full}, {"causal", AttentionMask::causal}};
inline const Choices<covariance_sde::StepScheme> step_schemes{
    {"geometric", covariance_sde::StepScheme::geometric},
    {"euler_maruyama", covariance_sde::StepScheme::euler_maruyama},
    {"euler_maruyama_dense", covariance_sde::StepScheme::euler_maruyama_dense}};
inline const Choices<covariance_sde::NetworkSampling> network_samplings{
    {"reduced", covariance_sde::NetworkSampling::reduced},
    {"explicit_weights", covariance_sde::NetworkSampling::explicit_weights}};
inline const Choices<covariance_sde::Shortcut> shortcuts{
    {"unit", covariance_sde::Shortcut::unit},
    {"variance_preserving", covariance_sde::Shortcut::variance_preserving}};

/// The commands of `widelimit sde`, in their order.
[[nodiscard]] const std::vector<std::string>& sde_command_names();

/// All fields of a command's configuration. ArgumentError for an unknown one.
[[nodiscard]] const ConfigFields& sde_fields(std::string_view command);

/// Of an entry of `networks` of `sde gradients`.
[[nodiscard]] const ConfigFields& sde_gradient_network_fields();

/// All fields of a command for --help, with an example.
[[nodiscard]] std::string sde_fields_help(std::string_view command);

}  // namespace widelimit::cli
