#pragma once

#include <nlohmann/json_fwd.hpp>

#include "widelimit/check/check_report.hpp"

namespace widelimit::specialization {

/// Recomputes every case of a reference file for this subject ("subject": "head-specialization").
///
/// Deterministic cases must agree within their rel_tol and abs_tol; stochastic ones (under "stochastic")
/// within four combined standard errors; if a mean over a few repetitions is compared, our error pools
/// the variances of ours and the file's. There is one row for each output field, named "case/field", with the entry
/// furthest from its tolerance.
///
/// Errors   DataError for another subject and missing fields; a case with an unknown function or bad inputs is a failed
///          row.
/// Cost     about a minute on two cores for the project's file, most of it for the SGD runs.
[[nodiscard]] check::CheckReport check_reference(const nlohmann::json& file);

}  // namespace widelimit::specialization
