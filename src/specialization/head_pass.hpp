#pragma once

#include "widelimit/specialization/activation.hpp"

namespace widelimit::specialization {

/// Forward and backward pass of the heads over one sequence, in double precision and without allocation.
///
/// The normalised weights s satisfy sigma[h][l] = factor(h) s[h][l] with factor 1, v[h], v or H.
class HeadPass {
 public:
  HeadPass(HeadActivation activation, Index heads, Index tokens);

  /// Computes s and a from scores chi (H x L).
  void forward(const Matrix<double>& chi, const Vector<double>& b, const Vector<double>& v);

  /// Computes the gradients below from g[l] = dLoss/da[l]; forward() with the same v must come first.
  void backward(const Vector<double>& g, const Vector<double>& v);

  double factor(Index head, const Vector<double>& v) const;

  Matrix<double> s;             ///< H x L.
  Vector<double> rest;          ///< softmax1: 1 - sum_l s[h][l], without cancellation; 0 otherwise.
  Vector<double> a;             ///< L.
  Matrix<double> chi_gradient;  ///< H x L.
  Vector<double> b_gradient;    ///< H.
  Vector<double> v_gradient;    ///< scale_count.

 private:
  void normalise(Index first, Index last, const Vector<double>& b);

  HeadActivation activation_;
};

}  // namespace widelimit::specialization
