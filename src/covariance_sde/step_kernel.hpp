#pragma once

#include <Eigen/Core>
#include <cmath>

#include "covariance_sde/causal_terms.hpp"
#include "covariance_sde/guarded_cholesky.hpp"
#include "covariance_sde/relu_drift.hpp"
#include "numerics/eigen_solver.hpp"
#include "widelimit/covariance_sde/model.hpp"

namespace widelimit::covariance_sde {

/// Time steps of one path, with the workspace for them. M is 2 or Eigen::Dynamic: for two tokens, the case of
/// most figures, the fixed size saves most of the time, which is spent on allocation and loop overhead
/// otherwise. More fixed sizes would cost more compilation than they save.
///
/// geometric() is for full attention only. `s` is G_1 + G_1^T.
template <int M>
class StepKernel {
 public:
  using Square = Eigen::Matrix<double, M, M>;
  using Column = Eigen::Matrix<double, M, 1>;

  StepKernel(const SdeModel& model, Index tokens)
      : model_{model},
        relu_rate_{model.relu_drift * relu_drift_scale(model.slopes)},
        tokens_{static_cast<double>(tokens)},
        l_(tokens, tokens),
        a_(tokens, tokens),
        b_(tokens, tokens),
        c_(tokens, tokens),
        causal_(tokens),
        solver_(tokens) {}

  /// |C|_F^2, C the covariance of centred tokens.
  double centred_square_norm(const Square& v) {
    centre(v);
    return a_.squaredNorm();
  }

  /// Rate at which the attention terms change the scale of V; 0 without attention.
  double attention_rate(const Square& v) {
    const double weight = model_.attention_drift + tokens_ * model_.attention_noise;
    if (!(weight > 0)) return 0;
    if (model_.mask == AttentionMask::full) return weight * centred_square_norm(v) / (tokens_ * tokens_);
    causal_.spread(v, a_);
    return weight * a_.diagonal().maxCoeff();
  }

  /// n <- the noise of docs/theory/covariance-sde.md, section 5.1, without a time step; false if V had left the cone.
  bool noise(const Square& v, const Square& s, const Square& g2, Square& n) {
    if (!guarded_cholesky(v, l_)) return false;
    b_.noalias() = l_ * s;
    n.noalias() = std::sqrt(model_.linear_noise / 2) * (b_ * l_.transpose());
    if (model_.attention_noise > 0 && model_.mask == AttentionMask::causal) {
      causal_.add_noise(v, l_, g2, std::sqrt(model_.attention_noise), n);
    } else if (model_.attention_noise > 0) {
      // K = V P L, where P L is L without the means of its columns.
      c_ = l_;
      c_.rowwise() -= l_.colwise().mean();
      b_.noalias() = v * c_;  // K
      c_.noalias() = l_ * g2;
      a_.noalias() = std::sqrt(model_.attention_noise) / tokens_ * (c_ * b_.transpose());
      n += a_ + a_.transpose();
    }
    return true;
  }

  void add_drift(const Square& v, double h, Square& sum) {
    if (model_.attention_drift > 0 && model_.mask == AttentionMask::causal) {
      // b_att of docs/theory/covariance-sde.md, section 3, or of 3.1 under a mask.
      causal_.add_drift(v, h * model_.attention_drift, sum);
    } else if (model_.attention_drift > 0) {
      centre(v);
      const double scale = h * model_.attention_drift;
      sum += scale * a_.squaredNorm() / (tokens_ * tokens_) * v;
      const Column q = v.diagonal(), u = v * excess();
      sum += scale / (2 * tokens_) * (q * u.transpose() + u * q.transpose());
    }
    add_relu_drift(v, h, sum);
  }

  bool euler_maruyama(Square& v, double h, const Square& s, const Square& g2, Square& n) {
    if (!noise(v, s, g2, n)) return false;
    n *= std::sqrt(h);
    add_drift(v, h, n);
    v += n;
    return true;
  }

  /// False if V is not finite or has left the cone, which happens by overflow only.
  bool geometric(Square& v, double h, const Square& s, const Square& g2) {
    half_drift(v, h);
    if (!guarded_cholesky(v, l_)) return false;
    exponent(h, s, g2);
    solver_.compute(c_);
    if (solver_.info() != Eigen::Success) return false;
    // exp(60) is far beyond every stopping bound, and finite.
    const Column powers = solver_.eigenvalues().cwiseMin(60.0).array().exp();
    b_.noalias() = l_ * solver_.eigenvectors();
    a_.noalias() = b_ * powers.asDiagonal();
    v.noalias() = a_ * b_.transpose();
    half_drift(v, h);
    return v.allFinite();
  }

 private:
  /// a_ <- C = P V P.
  void centre(const Square& v) {
    const Column means = v.rowwise().mean();
    a_ = v.colwise() - means;
    a_.rowwise() -= means.transpose();
    a_.array() += means.mean();
  }

  Column excess() const { return a_.diagonal().array() - a_.diagonal().mean(); }

  void add_relu_drift(const Square& v, double h, Square& sum) const {
    if (!(relu_rate_ > 0)) return;
    for (Index i = 0; i < v.rows(); ++i)
      for (Index j = 0; j < i; ++j) {
        const double change = h * relu_rate_ * scaled_correlation_drift(v(i, i), v(j, j), v(i, j));
        sum(i, j) += change;
        sum(j, i) += change;
      }
  }

  /// Half a step of the drifts that do not commute with the noise: ReLU first, then V <- E V E^T with
  /// E = I + k q s^T, written out because E differs from I by one rank.
  void half_drift(Square& v, double h) {
    add_relu_drift(v, h / 2, v);
    if (!(model_.attention_drift > 0)) return;
    centre(v);
    const Column s = excess(), q = v.diagonal(), u = v * s;
    const double k = h * model_.attention_drift / (4 * tokens_);
    // E V E^T = V + k (q u^T + u q^T) + k^2 (s^T u) q q^T with u = V s.
    const double curvature = k * k * s.dot(u);
    v += k * (q * u.transpose() + u * q.transpose()) + curvature * q * q.transpose();
  }

  /// c_ <- Xi.
  void exponent(double h, const Square& s, const Square& g2) {
    const double s_lin = model_.linear_noise, s_att = model_.attention_noise, m = tokens_;
    c_ = std::sqrt(h * s_lin / 2) * s;
    double shift = -h / 2 * s_lin * (m + 1);
    if (s_att > 0 || model_.attention_drift > 0) {
      const Column sums = l_.colwise().sum().transpose();
      a_.noalias() = l_.transpose() * l_ - sums * sums.transpose() / m;  // Q
      b_.noalias() = g2 * a_;
      c_ += std::sqrt(h * s_att) / m * (b_ + b_.transpose());
      b_.noalias() = a_ * a_;
      c_ -= h / 2 * s_att / (m * m) * (m + 2) * b_;
      shift += h * (model_.attention_drift - s_att / 2) / (m * m) * b_.trace();
    }
    c_.diagonal().array() += shift;
  }

  SdeModel model_;
  double relu_rate_;
  double tokens_;
  Square l_, a_, b_, c_;
  CausalTerms<M> causal_;
  Eigen::SelfAdjointEigenSolver<Square> solver_;
};

}  // namespace widelimit::covariance_sde
