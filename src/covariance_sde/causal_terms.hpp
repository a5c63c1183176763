#pragma once

#include <Eigen/Core>
#include <cmath>

namespace widelimit::covariance_sde {

using Eigen::Index;

/// Attention terms of the SDE under a causal mask (docs/theory/covariance-sde.md, section 3): token a sees tokens 0 ..
/// a, p_a is uniform on them, J_a = diag(p_a) - p_a p_a^T. Averages over what a token sees are running means of rows,
/// so that no J_a is formed. M as in StepKernel. O(m^3).
template <int M>
class CausalTerms {
 public:
  using Square = Eigen::Matrix<double, M, M>;
  using Column = Eigen::Matrix<double, M, 1>;

  explicit CausalTerms(Index tokens) : means_(tokens, tokens), work_(tokens, tokens), column_(tokens) {}

  /// spread <- tr(J_a V J_c V), which is |C|_F^2 / m^2 where all tokens see all.
  // With the squares taken entry by entry it is p_a^T V^2 p_c - (V p_a)^2 p_c - (V p_c)^2 p_a + (p_a^T V p_c)^2.
  void spread(const Square& v, Square& spread) {
    means_ = v;
    average(means_);  // row a: (V p_a)^T
    work_ = means_.cwiseAbs2().transpose();
    average(work_);  // (c, a): mean over what c sees of (V p_a)^2
    spread = v.cwiseAbs2();
    average_both(spread);
    spread -= work_ + work_.transpose();
    work_ = v;
    average_both(work_);
    spread += work_.cwiseAbs2();
  }

  /// sum += scale b_att(V).
  void add_drift(const Square& v, double scale, Square& sum) {
    Square factor(v.rows(), v.cols());
    spread(v, factor);  // leaves p_a^T V p_c in work_ and V p_a in means_
    sum += scale * v.cwiseProduct(factor);
    for (Index a = 0; a < v.rows(); ++a) {
      const double seen = static_cast<double>(a + 1);
      // r of section 3.1, centred and cut off after token a; divided by the number of seen tokens below it is h_a.
      column_ = v.diagonal().array() - 2 * means_.row(a).transpose().array() + work_(a, a);
      column_.head(a + 1).array() -= column_.head(a + 1).mean();
      column_.tail(v.rows() - a - 1).setZero();
      const Column tilt = v * column_ * (scale / 2 * v(a, a) / seen);
      sum.row(a) += tilt.transpose();
      sum.col(a) += tilt;
    }
  }

  /// n += scale (P + P^T), row a of P = V J_a L (L_a G)^T: covariance scale^2 A(V) for V = L L^T and a standard normal
  /// G.
  void add_noise(const Square& v, const Square& l, const Square& g, double scale, Square& n) {
    for (Index a = 0; a < v.rows(); ++a) {
      column_.noalias() = l * (l.row(a) * g).transpose();
      column_.head(a + 1).array() -= column_.head(a + 1).mean();
      column_.tail(v.rows() - a - 1).setZero();
      means_.row(a).noalias() = (v * column_).transpose() * (scale / static_cast<double>(a + 1));
    }
    n += means_ + means_.transpose();
  }

 private:
  /// Row a <- the mean of rows 0 .. a.
  static void average(Square& x) {
    for (Index a = 1; a < x.rows(); ++a) x.row(a) += x.row(a - 1);
    for (Index a = 1; a < x.rows(); ++a) x.row(a) /= static_cast<double>(a + 1);
  }

  static void average_both(Square& symmetric) {
    average(symmetric);
    symmetric.transposeInPlace();
    average(symmetric);
  }

  Square means_, work_;
  Column column_;
};

}  // namespace widelimit::covariance_sde
