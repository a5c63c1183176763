#pragma once

#include "json/json_value.hpp"
#include "widelimit/specialization/prior.hpp"

namespace widelimit::specialization {

/// {"kind": "flip2", "nu1", "nu2"}, {"kind": "spikes", "features", "nu"}, {"kind": "gaussian", "variances"} (or "nu1",
/// "nu2", "features") or {"kind": "discrete", "points", "probs"}. NetworkError naming the field, and as Prior.
[[nodiscard]] Prior read_prior(const JsonValue& description);

}  // namespace widelimit::specialization
