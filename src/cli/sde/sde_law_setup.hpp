#pragma once

#include <exception>
#include <string>

#include "widelimit/covariance_sde/configuration.hpp"

/// Which setups the exact laws of two tokens know; for the commands law and explosion.
namespace widelimit::cli {

[[nodiscard]] bool has_attention(const covariance_sde::SdeModel& model);

/// Two tokens of which the gap decides what attention does with them.
[[nodiscard]] bool has_gap(const covariance_sde::SdeSetup& setup);

/// What the exact laws know of the explosion: two tokens under full attention alone.
[[nodiscard]] bool has_gap_law(const covariance_sde::SdeSetup& setup);

/// Whether a law could not be computed at its time: the time is too long, or no grid resolves the law.
[[nodiscard]] bool is_out_of_reach(const std::exception& error);
/// What to say of it.
[[nodiscard]] std::string out_of_reach(const covariance_sde::SdeModel& model, double time);

}  // namespace widelimit::cli
