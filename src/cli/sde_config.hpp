#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "widelimit/covariance_sde/finite_network.hpp"
#include "widelimit/covariance_sde/simulate.hpp"
#include "widelimit/network/field_reader.hpp"

/// Reading of the JSON configurations of `widelimit sde`; errors name the field, and the file once
/// naming_errors() has put it in front.
namespace widelimit::cli {

/// The parsed file. DataError if it cannot be opened or is not a JSON object.
[[nodiscard]] nlohmann::json read_sde_config(const std::filesystem::path& file);

struct SdeSetup {
  covariance_sde::SdeModel model;
  Matrix<double> v0;
  covariance_sde::SimulationOptions options;
};

struct NetworkSetup {
  covariance_sde::NetworkSpec network;
  Matrix<double> v0;
  covariance_sde::NetworkOptions options;
};

/// Each reads its fields from the configuration and leaves the rest unread; call finish() on the reader
/// afterwards.
[[nodiscard]] SdeSetup read_sde_setup(FieldReader& fields);
[[nodiscard]] NetworkSetup read_network_setup(FieldReader& fields);

/// The list "gammas", replaced in the configuration by its first as "gamma"; empty if there is none.
[[nodiscard]] std::vector<double> take_gammas(nlohmann::json& config);

}  // namespace widelimit::cli
