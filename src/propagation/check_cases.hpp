#pragma once

#include <map>
#include <string>
#include <vector>

#include "json/json_value.hpp"
#include "widelimit/propagation/parameters.hpp"

namespace widelimit::propagation {

/// Recomputed fields of a case, arrays flattened; NaN stands for "there is none" (null in the file).
using CaseFields = std::map<std::string, std::vector<double>>;

/// DataError for a function or an activation that is not known.
[[nodiscard]] CaseFields recompute(const std::string& function, const JsonValue& inputs);

/// Fields "n", "sigma_A", "alpha_A", "alpha_M" (or "alpha"), "sigma_w", "sigma_out", "ell", "activation"
/// where present, or the defaults.
[[nodiscard]] Parameters read_parameters(const JsonValue& inputs);

/// Numbers of a field in the file: a number, null, or lists of them.
[[nodiscard]] std::vector<double> flat_numbers(const JsonValue& value);

/// The quantity of a grid at one point, by its name in the file.
[[nodiscard]] double grid_value(const std::string& quantity, const Parameters& parameters);

}  // namespace widelimit::propagation
