#include "widelimit/specialization/prior.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "numerics/eigen_solver.hpp"
#include "specialization/checks.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::specialization {

namespace {

constexpr double probability_tolerance = 1e-12;

/// What points and covariance of so many features take.
void require_room(Index features) {
  const double f = static_cast<double>(features);
  numerics::require_memory("prior: features", fmt::format("a covariance of {} features", features),
                           3 * f * f * sizeof(double), "take fewer features");
}

}  // namespace

Prior Prior::flip2(double nu1, double nu2) {
  require_not_negative("prior", "variance nu1", nu1);
  require_not_negative("prior", "variance nu2", nu2);
  Matrix<double> points(2, 2);
  points << std::sqrt(nu1), std::sqrt(nu2), std::sqrt(nu1), -std::sqrt(nu2);
  return discrete(points, Vector<double>::Constant(2, 0.5));
}

Prior Prior::spikes(Index features, double nu) {
  require_at_least("prior", "features", features, 1);
  require_not_negative("prior", "variance nu", nu);
  require_room(features);
  const Matrix<double> points = std::sqrt(nu) * Matrix<double>::Identity(features, features);
  return discrete(points, Vector<double>::Constant(features, 1 / static_cast<double>(features)));
}

Prior Prior::gaussian(const Vector<double>& variances) {
  if (variances.size() == 0) throw ArgumentError("prior: variances must not be empty");
  for (Index f = 0; f < variances.size(); ++f)
    require_not_negative("prior", fmt::format("variances[{}]", f), variances[f]);
  require_room(variances.size());
  Prior prior;
  prior.kind_ = Kind::gaussian;
  prior.variances_ = variances;
  prior.mean_ = Vector<double>::Zero(variances.size());
  prior.covariance_ = variances.asDiagonal();
  return prior;
}

Prior Prior::discrete(const Matrix<double>& points, const Vector<double>& probabilities) {
  if (points.rows() == 0 || points.cols() == 0)
    throw ArgumentError("prior: the support is empty; points must hold at least one point with one feature");
  if (probabilities.size() != points.rows())
    throw ArgumentError(fmt::format("prior: probs must have one entry a point ({}), got {}", points.rows(),
                                    probabilities.size()));
  require_finite("prior", "points", points);
  for (const double probability : probabilities) require_not_negative("prior", "probs", probability);
  const double total = probabilities.sum();
  if (!(std::abs(total - 1) <= probability_tolerance))
    throw ArgumentError(
        fmt::format("prior: probs must sum to 1 within {}, got {}", probability_tolerance, total));
  Prior prior;
  prior.points_ = points;
  prior.probabilities_ = probabilities;
  prior.cumulative_ = probabilities;
  for (Index k = 1; k < probabilities.size(); ++k) prior.cumulative_[k] += prior.cumulative_[k - 1];
  prior.half_norms_ = points.rowwise().squaredNorm() / 2;
  prior.mean_ = points.transpose() * probabilities;
  const Matrix<double> centred = points.rowwise() - prior.mean_.transpose();
  prior.covariance_ = centred.transpose() * probabilities.asDiagonal() * centred;
  return prior;
}

Vector<double> Prior::covariance_eigenvalues() const {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver{Eigen::MatrixXd(covariance_)};
  return solver.eigenvalues();
}

bool Prior::symmetric_in(Index feature) const {
  require_index("prior", "feature", feature, features());
  if (kind_ == Kind::gaussian) return true;
  const auto mass = [&](const Vector<double>& at) {
    double sum = 0;
    // Points may occur several times.
    for (Index k = 0; k < points_.rows(); ++k)
      if (points_.row(k).transpose() == at) sum += probabilities_[k];
    return sum;
  };
  for (Index k = 0; k < points_.rows(); ++k) {
    const Vector<double> point = points_.row(k).transpose();
    Vector<double> mirrored = point;
    mirrored[feature] = -mirrored[feature];
    if (std::abs(mass(mirrored) - mass(point)) > probability_tolerance) return false;
  }
  return true;
}

void Prior::sample(numerics::RandomStream& random, Vector<double>& theta) const {
  if (kind_ == Kind::gaussian) {
    theta.resize(features());
    for (Index f = 0; f < features(); ++f) theta[f] = std::sqrt(variances_[f]) * random.normal();
    return;
  }
  const double u = random.uniform();
  // Rounding can leave the last cumulated probability below u, so that the last point takes what is left.
  const auto place = std::upper_bound(cumulative_.begin(), cumulative_.end() - 1, u);
  theta = points_.row(place - cumulative_.begin()).transpose();
}

double Prior::token_score(const Vector<double>& chi_star) const {
  require_shape("prior", "chi_star", chi_star, features(), 1);
  return log_odds(chi_star, nullptr);
}

double Prior::token_score(const Vector<double>& chi_star, const Matrix<double>& spike_gram) const {
  require_shape("prior", "chi_star", chi_star, features(), 1);
  require_shape("prior", "spike_gram", spike_gram, features(), features());
  return log_odds(chi_star, &spike_gram);
}

double Prior::log_odds(const Vector<double>& chi_star, const Matrix<double>* spike_gram) const {
  if (kind_ == Kind::gaussian) {
    if (spike_gram == nullptr) {
      // For orthonormal spikes this is log E exp(theta . chi - |theta|^2 / 2), feature by feature.
      double score = 0;
      for (Index f = 0; f < features(); ++f) {
        const double nu = variances_[f];
        score += nu / (2 * (1 + nu)) * chi_star[f] * chi_star[f] - std::log1p(nu) / 2;
      }
      return score;
    }
    // The exact norm at finite D: log E exp(theta . chi - theta^T p theta / 2) for theta ~ N(0, diag(nu)) is chi^T (I +
    // nu p)^-1 nu chi / 2 - log det(I + nu p) / 2.
    const Matrix<double> precision =
        Matrix<double>::Identity(features(), features()) + variances_.asDiagonal() * *spike_gram;
    const Eigen::PartialPivLU<Eigen::MatrixXd> factors(precision);
    const Vector<double> shrunk = factors.solve(variances_.cwiseProduct(chi_star));
    return chi_star.dot(shrunk) / 2 - std::log(factors.determinant()) / 2;
  }
  // This is log sum_k P_k exp(theta_k . chi - |theta_k|^2 / 2), with the norm that the spikes' Gram
  // matrix gives, if there is one.
  double top = -std::numeric_limits<double>::infinity();
  double sum = 0;
  for (Index k = 0; k < points_.rows(); ++k) {
    if (probabilities_[k] == 0) continue;
    const auto point = points_.row(k);
    const double half_norm =
        spike_gram == nullptr ? half_norms_[k] : point.dot(*spike_gram * point.transpose()) / 2;
    const double term = std::log(probabilities_[k]) - half_norm + point.dot(chi_star);
    // The sum runs in units of the largest term so far.
    if (term > top) {
      sum = sum * std::exp(top - term) + 1;
      top = term;
    } else {
      sum += std::exp(term - top);
    }
  }
  return top + std::log(sum);
}

Vector<double> linear_variances(Index features, double first, double last) {
  require_at_least("linear_variances", "features", features, 1);
  require_room(features);
  require_not_negative("prior", "variance nu1", first);
  require_not_negative("prior", "variance nu2", last);
  Vector<double> variances(features);
  for (Index f = 0; f < features; ++f)
    variances[f] = features == 1
                       ? first
                       : first + (last - first) * static_cast<double>(f) / static_cast<double>(features - 1);
  return variances;
}

}  // namespace widelimit::specialization
