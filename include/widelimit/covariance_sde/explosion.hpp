#pragma once

#include <vector>

#include "widelimit/covariance_sde/ensemble.hpp"
#include "widelimit/covariance_sde/model.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::covariance_sde {

/// (V^11 + V^22 - 2 V^12) / 4 of two tokens.
[[nodiscard]] double gap_of(const Matrix<double>& v);

/// Whether full attention moves two tokens apart from a gap, which is then what decides whether they explode.
[[nodiscard]] bool has_gap(const SdeModel& model, const Matrix<double>& v0);

/// The share of paths that exploded by a time.
struct ExplosionShare {
  double time = 0;
  Index beyond_upper = 0;  ///< Paths that went beyond the upper bound by then.
  double explodes_from_there =
      1;  ///< Their mean probability to explode rather than to return; 1 where it is not known.
  double probability = 0;                  ///< Their share times that.
  numerics::ProbabilityInterval interval;  ///< 95 % of the share times that.
};

/// At each time of an ensemble of paths from v0: of simulate() with step_control 0.005 and an upper bound of 1e6, from
/// which attention alone decides.
[[nodiscard]] std::vector<ExplosionShare> explosion_shares(const SdeModel& model, const Matrix<double>& v0,
                                                           const CovarianceEnsemble& ensemble);

}  // namespace widelimit::covariance_sde
