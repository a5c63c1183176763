#pragma once

#include <Eigen/Core>
#include <cmath>

#include "covariance_sde/chain_draws.hpp"
#include "covariance_sde/guarded_cholesky.hpp"

namespace widelimit::covariance_sde {

/// The covariance of a random network as a Markov chain on m x m matrices, with the exact distribution
/// (docs/theory/covariance-sde.md, section 6.1).
///
/// For x' = lambda x + gamma N, where the columns of N are iid N(0, U U^T), rotate x = sqrt(n) [L 0]:
///     V' = B B^T + (gamma^2 / n) U W U^T,  B = lambda L + (gamma / sqrt(n)) U Z,  W ~ Wishart_m(n - m).
///
/// M is the number of tokens or Eigen::Dynamic, as in StepKernel.
template <int M>
class NetworkChain {
 public:
  using Square = Eigen::Matrix<double, M, M>;
  using Column = Eigen::Matrix<double, M, 1>;
  using Stream = numerics::RandomStream;

  NetworkChain(const NetworkSpec& network, Index tokens)
      : network_{network},
        residual_{network.residual},
        v_(tokens, tokens),
        mean_(tokens),
        l_(tokens, tokens),
        unit_(tokens, tokens),
        u_(tokens, tokens),
        z_(tokens, tokens),
        t_(tokens, tokens),
        b_(tokens, tokens),
        hidden_(tokens) {}

  /// Draws the feature means of a normalised network.
  void start(const Square& v0, Stream& stream) {
    v_ = v0;
    if (!normalised()) return;
    const Index m = v0.rows();
    Square root(m, m);
    valid_ = guarded_cholesky(v0, root);
    Column g(m);
    draw_normals(g, stream);
    const auto n = static_cast<double>(network_.width);
    const double rest = network_.width > m ? chi_squared(network_.width - m, stream) : 0;
    // The mean over features is u_0 = L g sqrt(n / (|g|^2 + chi^2)) of section 6.1; v_ keeps the rest.
    mean_ = root * g * std::sqrt(n / (g.squaredNorm() + rest));
    v_ -= mean_ * mean_.transpose() / n;
  }

  /// False once V is no finite covariance.
  bool layer(Stream& stream) {
    if (network_.attention) {
      residual_ = network_.residual;
      factor();
      draw_query_key(key_width_of(network_), stream, t_, b_, z_);
      attend();
      update(stream);
    }
    if (network_.feedforward) {
      factor();
      draw_hidden(stream);
      residual_ = feedforward_residual_of(network_);
      update(stream);
    }
    return valid_ && v_.allFinite();
  }

  /// V = X X^T / n.
  Square covariance() const {
    if (!normalised()) return v_;
    return v_ + mean_ * mean_.transpose() / static_cast<double>(network_.width);
  }

  /// The covariance of what the next block sees.
  Square branch_covariance() const {
    if (!normalised()) return v_;
    const Column scale = v_.diagonal().cwiseSqrt().cwiseInverse();
    return scale.asDiagonal() * v_ * scale.asDiagonal();
  }

  /// The steps of a layer one by one, for given draws.
  void set_covariance(const Square& v) {
    v_ = v;
    factor();
  }
  void attend_with(const Square& query_key) {
    z_ = query_key;
    attend();
  }
  void set_branch_gram(const Square& gram) {
    residual_ = feedforward_residual_of(network_);
    valid_ = guarded_cholesky(gram, u_) && valid_;
  }
  void update_with(const Square& z, const Square& wishart_root) {
    z_ = z;
    t_ = wishart_root;
    combine();
  }
  const Square& input_root() const { return unit_; }
  const Square& attention() const { return b_; }

 private:
  /// l_ l_^T = V, and unit_ the root that the branch sees.
  void factor() {
    valid_ = guarded_cholesky(v_, l_) && valid_;
    unit_ = l_;
    if (!normalised()) return;
    for (Index a = 0; a < v_.rows(); ++a)
      if (v_(a, a) > 0) unit_.row(a) /= std::sqrt(v_(a, a));
  }

  /// u_ <- A L from the query-key product in z_.
  void attend() {
    u_.noalias() = unit_ * z_;
    b_.noalias() = u_ * unit_.transpose();
    apply_softmax(network_, b_);
    u_.noalias() = b_ * unit_;
  }

  /// u_ <- root of the Gram matrix of the hidden units.
  void draw_hidden(Stream& stream) {
    draw_hidden_gram(network_, unit_, stream, hidden_, b_);
    valid_ = guarded_cholesky(b_, u_) && valid_;
  }

  void update(Stream& stream) {
    if (normalised()) {
      draw_normals(hidden_, stream);
      mean_ = residual_.lambda() * mean_ + residual_.gamma() * (u_ * hidden_);
    }
    draw_normals(z_, stream);
    // LayerNorm's mean has taken one of the n feature axes.
    draw_wishart_root(network_.width - v_.rows() - (normalised() ? 1 : 0), stream, t_);
    combine();
  }

  void combine() {
    const double root = residual_.gamma() / std::sqrt(static_cast<double>(network_.width));
    b_.noalias() = root * (u_ * z_);
    b_ += residual_.lambda() * l_;
    v_.noalias() = b_ * b_.transpose();
    b_.noalias() = root * (u_ * t_);
    v_.noalias() += b_ * b_.transpose();
  }

  [[nodiscard]] bool normalised() const { return network_.normalization == Normalization::pre_layer_norm; }

  NetworkSpec network_;
  ResidualWeights residual_;  // those of the block that is at work
  bool valid_ = true;
  Square v_;  // without the mean over features, where LayerNorm takes it out
  Column mean_;
  Square l_, unit_, u_, z_, t_, b_;
  Column hidden_;
};

}  // namespace widelimit::covariance_sde
