#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// The prior that a JSON object describes: {"kind": "flip2", "nu1", "nu2"}, {"kind": "spikes", "features", "nu"},
/// {"kind": "gaussian", "variances"} (or "nu1", "nu2", "features") or {"kind": "discrete", "points", "probs"}.
/// `path` says where it stands, as "config.prior". Errors: NetworkError and DataError naming the field, and as Prior.
[[nodiscard]] Prior read_prior(const nlohmann::json& description, const std::string& path);

}  // namespace widelimit::specialization
