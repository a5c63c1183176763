#include "covariance_sde/explicit_network.hpp"

#include <Eigen/Cholesky>
#include <cmath>

#include "covariance_sde/guarded_cholesky.hpp"
#include "widelimit/error.hpp"

namespace widelimit::covariance_sde {

ExplicitNetwork::ExplicitNetwork(const NetworkSpec& network, Index tokens)
    : network_{network}, x_(tokens, network.width) {}

Eigen::MatrixXd ExplicitNetwork::weights(Index rows, Index columns, numerics::RandomStream& stream) const {
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&stream] { return stream.normal(); });
}

void ExplicitNetwork::start(const Square& v0, numerics::RandomStream& stream) {
  const Eigen::MatrixXd g = weights(v0.rows(), network_.width, stream);
  // Orthonormal rows of uniformly random direction.
  const Eigen::MatrixXd axes = Eigen::LLT<Eigen::MatrixXd>(g * g.transpose()).matrixL().solve(g);
  Square root(v0.rows(), v0.rows());
  if (!guarded_cholesky(v0, root))
    throw NumericalError("ExplicitNetwork: V_0 is not positive semidefinite to rounding");
  x_ = std::sqrt(static_cast<double>(network_.width)) * root * axes;
}

Eigen::MatrixXd ExplicitNetwork::branch_input() const {
  if (network_.normalization == Normalization::none) return x_;
  Eigen::MatrixXd normalised = x_.colwise() - x_.rowwise().mean();
  for (Index a = 0; a < x_.rows(); ++a)
    normalised.row(a) /= std::sqrt(normalised.row(a).squaredNorm() / static_cast<double>(x_.cols()));
  return normalised;
}

bool ExplicitNetwork::layer(numerics::RandomStream& stream) {
  const Index n = network_.width;
  const double root = std::sqrt(static_cast<double>(n));
  const double lambda = network_.residual.lambda(), gamma = network_.residual.gamma();
  if (network_.attention) {
    const Eigen::MatrixXd input = branch_input();
    const Index key = key_width_of(network_);
    const Eigen::MatrixXd queries = input * weights(n, key, stream), keys = input * weights(n, key, stream);
    Eigen::MatrixXd a = queries * keys.transpose() / static_cast<double>(n);
    apply_softmax(network_, a);
    x_ = lambda * x_ + gamma / root * (a * input) * weights(n, n, stream);
  }
  if (network_.feedforward) {
    const ActivationSlopes slopes = network_.feedforward->slopes;
    const Index units = hidden_width_of(network_);
    Eigen::MatrixXd hidden = branch_input() * weights(n, units, stream) / root;
    hidden = hidden.cwiseMax(0) * slopes.plus + hidden.cwiseMin(0) * slopes.minus;
    const double scale = std::sqrt(slopes.normaliser() / static_cast<double>(units));
    x_ = lambda * x_ + gamma * scale * hidden * weights(units, n, stream);
  }
  return x_.allFinite();
}

ExplicitNetwork::Square ExplicitNetwork::covariance() const {
  return x_ * x_.transpose() / static_cast<double>(network_.width);
}

}  // namespace widelimit::covariance_sde
