#pragma once

#include <string>

#include "check/reference_file.hpp"
#include "widelimit/propagation/parameters.hpp"

namespace widelimit::propagation {

using check::CaseFields;

/// DataError for a function or an activation that is not known.
[[nodiscard]] CaseFields recompute(const std::string& function, const JsonValue& inputs);

/// Fields "n", "sigma_A", "alpha_A", "alpha_M" (or "alpha"), "sigma_w", "sigma_out", "ell", "activation"
/// where present, or the defaults.
[[nodiscard]] Parameters read_parameters(const JsonValue& inputs);

/// The quantity of a grid at one point, by its name in the file.
[[nodiscard]] double grid_value(const std::string& quantity, const Parameters& parameters);

}  // namespace widelimit::propagation
