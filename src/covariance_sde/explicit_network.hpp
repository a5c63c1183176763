#pragma once

#include <Eigen/Core>

#include "covariance_sde/network_spec.hpp"
#include "numerics/normal_matrix.hpp"

namespace widelimit::covariance_sde {

/// LayerNorm of each row, without gain and offset.
Eigen::MatrixXd layer_normalised(const Eigen::MatrixXd& x);

/// The leaky ReLU of every entry.
inline Eigen::MatrixXd activated(const Eigen::MatrixXd& x, ActivationSlopes slopes) {
  return x.cwiseMax(0) * slopes.plus + x.cwiseMin(0) * slopes.minus;
}

/// Takes the gradient with respect to activated(x) to that with respect to x.
inline Eigen::MatrixXd activation_backward(const Eigen::MatrixXd& x, ActivationSlopes slopes,
                                           const Eigen::MatrixXd& gradient) {
  return (x.array() > 0).select(slopes.plus * gradient, slopes.minus * gradient);
}

inline Eigen::MatrixXd normal_weights(Index rows, Index columns, numerics::RandomStream& stream) {
  return numerics::normal_matrix<Eigen::MatrixXd>(rows, columns, stream);
}

/// A random network with its n x n weight matrices, drawn as the layers go: the cross-check of NetworkChain.
class ExplicitNetwork {
 public:
  using Square = Eigen::MatrixXd;

  ExplicitNetwork(const NetworkSpec& network, Index tokens);

  /// X_0 with X_0 X_0^T = n V_0 and uniformly random feature axes.
  void start(const Square& v0, numerics::RandomStream& stream);
  bool layer(numerics::RandomStream& stream);
  Square covariance() const;
  /// The covariance of what a residual branch sees.
  Square branch_covariance() const;
  /// [m, n]
  const Eigen::MatrixXd& tokens() const { return x_; }

 private:
  Eigen::MatrixXd branch_input() const;
  void attend(numerics::RandomStream& stream);
  void feed_forward(numerics::RandomStream& stream);

  NetworkSpec network_;
  Eigen::MatrixXd x_;  // m x n
};

}  // namespace widelimit::covariance_sde
