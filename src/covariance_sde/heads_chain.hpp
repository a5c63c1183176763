#pragma once

#include <vector>

#include "covariance_sde/chain_draws.hpp"
#include "covariance_sde/guarded_cholesky.hpp"

namespace widelimit::covariance_sde {

/// NetworkChain for attention of several heads, whose values are slices of the features: the state is the Gram matrix
/// V_h of each slice of n / H features, V their sum. Logits and hidden units depend on V alone, and each slice moves as
/// a network of n / H features does:
///     V_h' = B_h B_h^T + (gamma^2 / n) U_h W_h U_h^T,  B_h = lambda L_h + (gamma / sqrt(n)) U_h Z_h,
///     W_h ~ Wishart_m(n / H - m),  U_h = A_h L in an attention block, the root of the hidden units' Gram matrix else.
/// Without normalisation, and n / H >= m.
class HeadsChain {
 public:
  using Square = Eigen::MatrixXd;
  using Stream = numerics::RandomStream;

  HeadsChain(const NetworkSpec& network, Index tokens)
      : network_{network},
        slices_(static_cast<std::size_t>(heads_of(network)), Square::Zero(tokens, tokens)),
        v_(tokens, tokens),
        root_(tokens, tokens),
        slice_root_(tokens, tokens),
        u_(tokens, tokens),
        z_(tokens, tokens),
        work_(tokens, tokens),
        unit_(tokens) {}

  /// The features of X_0 in general position: the slices share V_0 as independent Wishart matrices share their sum.
  void start(const Square& v0, Stream& stream) {
    v_ = v0;
    Square sum = Square::Zero(v0.rows(), v0.cols());
    for (Square& slice : slices_) {
      draw_wishart_root(slice_width(), stream, work_);
      slice = work_ * work_.transpose();
      sum += slice;
    }
    Square sum_root(v0.rows(), v0.cols());
    valid_ = guarded_cholesky(v0, root_) && guarded_cholesky(sum, sum_root);
    if (!valid_) return;
    const auto lower = sum_root.triangularView<Eigen::Lower>();
    for (Square& slice : slices_) {
      // This is S^{-1/2} S_h S^{-T/2} between the roots of V_0 (docs/theory/covariance-sde.md, section 6.1).
      slice = lower.solve(lower.solve(slice).transpose().eval());
      slice = root_ * slice * root_.transpose();
    }
  }

  /// False once V is no finite covariance.
  bool layer(Stream& stream) {
    valid_ = guarded_cholesky(v_, root_) && valid_;
    for (Square& slice : slices_) {
      draw_query_key(key_width_of(network_), stream, work_, u_, z_);
      work_.noalias() = root_ * z_ * root_.transpose();
      apply_softmax(network_, work_);
      u_.noalias() = work_ * root_;
      update(network_.residual, slice, stream);
    }
    add_up();
    if (network_.feedforward) {
      valid_ = guarded_cholesky(v_, root_) && valid_;
      draw_hidden_gram(network_, root_, stream, unit_, work_);
      valid_ = guarded_cholesky(work_, u_) && valid_;
      for (Square& slice : slices_) update(feedforward_residual_of(network_), slice, stream);
      add_up();
    }
    return valid_ && v_.allFinite();
  }

  const Square& covariance() const { return v_; }
  const Square& branch_covariance() const { return v_; }

 private:
  [[nodiscard]] Index slice_width() const { return network_.width / heads_of(network_); }

  /// Adds a branch of root u_ to a slice.
  void update(ResidualWeights residual, Square& slice, Stream& stream) {
    valid_ = guarded_cholesky(slice, slice_root_) && valid_;
    draw_normals(z_, stream);
    draw_wishart_root(slice_width() - v_.rows(), stream, work_);
    const double scale = residual.gamma() / std::sqrt(static_cast<double>(network_.width));
    z_ = (residual.lambda() * slice_root_ + scale * (u_ * z_)).eval();
    work_ = (scale * (u_ * work_)).eval();
    slice.noalias() = z_ * z_.transpose();
    slice.noalias() += work_ * work_.transpose();
  }

  void add_up() {
    v_.setZero();
    for (const Square& slice : slices_) v_ += slice;
  }

  NetworkSpec network_;
  bool valid_ = true;
  std::vector<Square> slices_;
  Square v_, root_, slice_root_, u_, z_, work_;
  Eigen::VectorXd unit_;
};

}  // namespace widelimit::covariance_sde
