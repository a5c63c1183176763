#pragma once

#include <nlohmann/json_fwd.hpp>

#include "widelimit/check/check_report.hpp"

namespace widelimit::propagation {

/// Recomputes every case and every entry of every grid of a reference file of subject "signal-propagation".
/// Tolerance: the case's abs_tol + rel_tol |expected|. An expected null must be computed as "none".
///
/// A case that can't be computed is a failed row that says why. Errors: DataError if the subject is another
/// one, or a field is missing or malformed.
[[nodiscard]] check::CheckReport check_reference(const nlohmann::json& reference);

}  // namespace widelimit::propagation
