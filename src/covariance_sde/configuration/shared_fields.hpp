#pragma once

#include <optional>
#include <string>

#include "widelimit/covariance_sde/configuration.hpp"
#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/fields/config_reader.hpp"

/// What models and networks are told alike.
namespace widelimit::covariance_sde {

/// The words of enumerations.
inline const Choices<AttentionMask> masks{{"full", AttentionMask::full}, {"causal", AttentionMask::causal}};
inline const Choices<StepScheme> step_schemes{{"geometric", StepScheme::geometric},
                                              {"euler_maruyama", StepScheme::euler_maruyama},
                                              {"euler_maruyama_dense", StepScheme::euler_maruyama_dense}};
inline const Choices<NetworkSampling> network_samplings{
    {"reduced", NetworkSampling::reduced}, {"explicit_weights", NetworkSampling::explicit_weights}};
inline const Choices<Shortcut> shortcuts{{"unit", Shortcut::unit},
                                         {"variance_preserving", Shortcut::variance_preserving}};

/// Variances at a start: products of four of them, which coefficients have, are numbers of double.
inline constexpr double smallest_variance = 1e-75, largest_variance = 1e75;

/// Residual weights of the attention block, or the only one.
[[nodiscard]] ResidualWeights read_residual(ConfigReader& fields);
/// Of the feedforward block; nothing where it has those of the attention block.
[[nodiscard]] std::optional<ResidualWeights> read_feedforward_residual(ConfigReader& fields);
/// Of models and networks that only shaped weights have a limit for. `suffix`: after the names of the fields.
void require_shaped(const ConfigReader& fields, ResidualWeights residual, const std::string& suffix = "");

[[nodiscard]] ShapedSlopes read_slopes(ConfigReader& fields);
[[nodiscard]] std::uint64_t read_seed(ConfigReader& fields);

/// "lower" and "upper". Where a start lies outside, the error names the bound that was given, or else a field of the
/// start.
[[nodiscard]] StopBounds read_bounds(ConfigReader& fields, const Matrix<double>& v0);

/// Paths or networks whose covariances of all times have to fit into memory.
void require_room(const ConfigReader& fields, const char* name, Index paths, const Matrix<double>& v0,
                  std::size_t times);

}  // namespace widelimit::covariance_sde
