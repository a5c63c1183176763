#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "widelimit/check/check_report.hpp"
#include "widelimit/covariance_sde/model.hpp"

namespace widelimit::covariance_sde {

/// Sizes of the Monte-Carlo part of a check. More samples give a sharper check.
struct CheckOptions {
  Index sde_paths = 16'384;
  Index network_samples = 4'096;
  std::uint64_t seed = 1;
  int threads = 0;  ///< 0: as many as there are processors.
};

/// Recomputes every case of a reference file of subject "shaped-transformer"
/// (docs/theory/covariance-sde.md, section 9).
///
/// There is one row for each array: the entry furthest from its tolerance. Coefficients, given-noise steps and scalars
/// must agree to 1e-10 (relative to the largest entry of the array if that is above 1), quantiles of exact
/// distributions to 1e-9 (1e-6 with explosion), sampled quantiles, means and counts to 4 combined standard errors.
///
/// Errors  DataError if the subject is another one, or a field is missing or malformed.
/// Cost    about a minute of processor time at the default sizes.
[[nodiscard]] check::CheckReport check_reference(const nlohmann::json& reference,
                                                 const CheckOptions& options = {});

}  // namespace widelimit::covariance_sde
