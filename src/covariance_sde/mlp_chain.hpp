#pragma once

#include <Eigen/Core>

#include "covariance_sde/explicit_network.hpp"
#include "covariance_sde/guarded_cholesky.hpp"
#include "covariance_sde/network_spec.hpp"
#include "numerics/wishart.hpp"

namespace widelimit::covariance_sde {

/// The covariance of the multilayer perceptron of eq. 19, X' = sigma(X) sqrt(c / n) W: given X, the columns of X' are
/// N(0, Phi) with Phi = (c / n) sigma(X) sigma(X)^T, so that V' and Phi' are means over n draws of a column.
class MlpChain {
 public:
  using Square = Eigen::MatrixXd;

  MlpChain(const NetworkSpec& network, Index tokens)
      : network_{network},
        v_(tokens, tokens),
        phi_(tokens, tokens),
        root_(tokens, tokens),
        sums_(tokens, tokens),
        unit_(tokens) {}

  /// The first activation acts on X_0 itself, whose feature axes are in general position.
  void start(const Square& v0, numerics::RandomStream& stream) {
    ExplicitNetwork inputs(network_, v0.rows());
    inputs.start(v0, stream);
    v_ = v0;
    const Eigen::MatrixXd active = activated(inputs.tokens(), *network_.plain);
    phi_ = network_.plain->normaliser() / static_cast<double>(network_.width) * active * active.transpose();
  }

  /// False once V is no finite covariance.
  bool layer(numerics::RandomStream& stream) {
    const bool valid = guarded_cholesky(phi_, root_);
    const Index m = v_.rows();
    const ActivationSlopes slopes = *network_.plain;
    v_.setZero();
    sums_.setZero();
    for (Index i = 0; i < network_.width; ++i) {
      numerics::draw_normals(unit_, stream);
      // From the last token to the first, because unit_(a) takes the place of a normal that only later tokens read.
      for (Index a = m; a-- > 0;) unit_(a) = root_.row(a).head(a + 1).dot(unit_.head(a + 1));
      for (Index b = 0; b < m; ++b) v_.col(b) += unit_(b) * unit_;
      // Columns of X' have been counted; activated they are the columns of Phi'.
      for (double& x : unit_) x *= x > 0 ? slopes.plus : slopes.minus;
      for (Index b = 0; b < m; ++b) sums_.col(b) += unit_(b) * unit_;
    }
    const auto n = static_cast<double>(network_.width);
    v_ /= n;
    phi_ = slopes.normaliser() / n * sums_;
    return valid && v_.allFinite() && phi_.allFinite();
  }

  const Square& covariance() const { return v_; }
  const Square& branch_covariance() const { return v_; }

 private:
  NetworkSpec network_;
  Square v_, phi_, root_, sums_;
  Eigen::VectorXd unit_;
};

}  // namespace widelimit::covariance_sde
