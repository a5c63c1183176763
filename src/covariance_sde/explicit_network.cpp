#include "covariance_sde/explicit_network.hpp"

#include <Eigen/Cholesky>
#include <cmath>

#include "covariance_sde/guarded_cholesky.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

Eigen::MatrixXd layer_normalised(const Eigen::MatrixXd& x) {
  Eigen::MatrixXd normalised = x.colwise() - x.rowwise().mean();
  for (Index a = 0; a < x.rows(); ++a)
    normalised.row(a) /= std::sqrt(normalised.row(a).squaredNorm() / static_cast<double>(x.cols()));
  return normalised;
}

ExplicitNetwork::ExplicitNetwork(const NetworkSpec& network, Index tokens)
    : network_{network}, x_(tokens, network.width) {}

void ExplicitNetwork::start(const Square& v0, numerics::RandomStream& stream) {
  const Eigen::MatrixXd g = normal_weights(v0.rows(), network_.width, stream);
  // Orthonormal rows of uniformly random direction.
  const Eigen::MatrixXd axes = Eigen::LLT<Eigen::MatrixXd>(g * g.transpose()).matrixL().solve(g);
  Square root(v0.rows(), v0.rows());
  if (!guarded_cholesky(v0, root))
    throw NumericalError("ExplicitNetwork: V_0 is not positive semidefinite to rounding");
  x_ = std::sqrt(static_cast<double>(network_.width)) * root * axes;
}

Eigen::MatrixXd ExplicitNetwork::branch_input() const {
  return network_.normalization == Normalization::pre_layer_norm ? layer_normalised(x_) : x_;
}

void ExplicitNetwork::attend(numerics::RandomStream& stream) {
  const Index n = network_.width, heads = heads_of(network_), slice = n / heads, key = key_width_of(network_);
  const double scale = network_.residual.gamma() / std::sqrt(static_cast<double>(n));
  const Eigen::MatrixXd input = branch_input();
  // `input` has been taken before, so that the tokens can be scaled in place.
  x_ *= network_.residual.lambda();
  for (Index head = 0; head < heads; ++head) {
    const Eigen::MatrixXd queries = input * normal_weights(n, key, stream),
                          keys = input * normal_weights(n, key, stream);
    Eigen::MatrixXd a = queries * keys.transpose() / static_cast<double>(n);
    apply_softmax(network_, a);
    x_.middleCols(head * slice, slice) += scale * (a * input) * normal_weights(n, slice, stream);
  }
}

void ExplicitNetwork::feed_forward(numerics::RandomStream& stream) {
  const Index n = network_.width, units = hidden_width_of(network_);
  const ActivationSlopes slopes = network_.feedforward->slopes;
  const ResidualWeights residual = feedforward_residual_of(network_);
  const Eigen::MatrixXd hidden = activated(
      branch_input() * normal_weights(n, units, stream) / std::sqrt(static_cast<double>(n)), slopes);
  const double scale = std::sqrt(slopes.normaliser() / static_cast<double>(units));
  x_ = residual.lambda() * x_ + residual.gamma() * scale * hidden * normal_weights(units, n, stream);
}

bool ExplicitNetwork::layer(numerics::RandomStream& stream) {
  const bool normalises = network_.normalization == Normalization::post_layer_norm;
  if (network_.plain) {
    const Index n = network_.width;
    const double scale = std::sqrt(network_.plain->normaliser() / static_cast<double>(n));
    x_ = scale * activated(x_, *network_.plain) * normal_weights(n, n, stream);
  }
  if (network_.attention) {
    attend(stream);
    if (normalises) x_ = layer_normalised(x_);
  }
  if (network_.feedforward) {
    feed_forward(stream);
    if (normalises) x_ = layer_normalised(x_);
  }
  return x_.allFinite();
}

ExplicitNetwork::Square ExplicitNetwork::covariance() const {
  return x_ * x_.transpose() / static_cast<double>(network_.width);
}

ExplicitNetwork::Square ExplicitNetwork::branch_covariance() const {
  const Eigen::MatrixXd input = branch_input();
  return input * input.transpose() / static_cast<double>(network_.width);
}

}  // namespace widelimit::covariance_sde
