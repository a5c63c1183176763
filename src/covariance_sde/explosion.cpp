#include "widelimit/covariance_sde/explosion.hpp"

#include "widelimit/covariance_sde/exact_distributions.hpp"

namespace widelimit::covariance_sde {

namespace {

/// Paths that have gone beyond the upper bound by a time.
std::vector<Index> beyond_by(const CovarianceEnsemble& ensemble, double time) {
  std::vector<Index> paths;
  for (Index path = 0; path < ensemble.paths(); ++path) {
    const PathOutcome& outcome = ensemble.outcome(path);
    const bool above = outcome.end == PathEnd::above || outcome.end == PathEnd::not_finite;
    if (above && outcome.stop_time <= time) paths.push_back(path);
  }
  return paths;
}

/// Mean probability that such paths explode rather than return, by the scale function of the gap; attention alone
/// decides up there.
double explodes_from_there(SdeModel model, const CovarianceEnsemble& ensemble,
                           const std::vector<Index>& paths) {
  model.relu_drift = 0;
  const Index last = static_cast<Index>(ensemble.times().size()) - 1;
  double sum = 0;
  for (const Index path : paths) {
    // A stopped path keeps its last state inside the bounds, so that the last time holds it.
    const double gap = gap_of(ensemble.covariance(last, path));
    if (gap > 0) sum += explosion_probability(model, gap);
  }
  return sum / static_cast<double>(paths.size());
}

}  // namespace

double gap_of(const Matrix<double>& v) { return (v(0, 0) + v(1, 1) - 2 * v(0, 1)) / 4; }

bool has_gap(const SdeModel& model, const Matrix<double>& v0) {
  return model.mask == AttentionMask::full && model.attention_drift > 0 && v0.rows() == 2 && gap_of(v0) > 0;
}

std::vector<ExplosionShare> explosion_shares(const SdeModel& model, const Matrix<double>& v0,
                                             const CovarianceEnsemble& ensemble) {
  std::vector<ExplosionShare> shares;
  for (const double time : ensemble.times()) {
    const std::vector<Index> beyond = beyond_by(ensemble, time);
    ExplosionShare share{.time = time, .beyond_upper = static_cast<Index>(beyond.size()), .interval = {}};
    if (has_gap(model, v0) && !beyond.empty())
      share.explodes_from_there = explodes_from_there(model, ensemble, beyond);
    const double factor = share.explodes_from_there;
    share.probability =
        factor * static_cast<double>(share.beyond_upper) / static_cast<double>(ensemble.paths());
    const auto interval = numerics::binomial_interval(share.beyond_upper, ensemble.paths());
    share.interval = {factor * interval.lower, factor * interval.upper};
    shares.push_back(share);
  }
  return shares;
}

}  // namespace widelimit::covariance_sde
