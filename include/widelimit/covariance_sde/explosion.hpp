#pragma once

#include <vector>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::covariance_sde {

/// (V^11 + V^22 - 2 V^12) / 4 of two tokens.
[[nodiscard]] double gap_of(const Matrix<double>& v);

/// Whether full attention moves two tokens apart from a given gap, which then decides whether they explode.
[[nodiscard]] bool has_gap(const SdeModel& model, const Matrix<double>& v0);

/// The share of paths that exploded by a time.
struct ExplosionShare {
  double time = 0;
  Index beyond_upper = 0;  ///< Paths that had exceeded the upper bound by then.
  /// Their mean probability to explode rather than to return; 1 if it is not known.
  double explodes_from_there = 1;
  double probability = 0;                  ///< The share of these paths times explodes_from_there.
  numerics::ProbabilityInterval interval;  ///< 95 % interval of the share times the same.
};

/// The share at each time of an ensemble of paths from v0, from simulate() with step_control 0.005 and an upper bound
/// of 1e6, beyond which attention alone decides.
[[nodiscard]] std::vector<ExplosionShare> explosion_shares(const SdeModel& model, const Matrix<double>& v0,
                                                           const CovarianceEnsemble& ensemble);

}  // namespace widelimit::covariance_sde
