#pragma once

#include <Eigen/Core>
#include <stdexcept>

namespace widelimit::propagation {

/// Of two rows w, u of softmax over n keys whose logits s x_i and s y_i are independent over i, x_i and y_i standard
/// normal of one correlation: what 1/sqrt(width) attention makes of n tokens of one norm and one cosine.
struct SoftmaxMoments {
  double products;   ///< E sum_i w_i u_i
  double jacobians;  ///< E tr(J_w J_u), J_w = diag(w) - w w^T
};

/// Logits too sharp for the integrals.
class LogitsTooSharp : public std::runtime_error {
 public:
  LogitsTooSharp() : std::runtime_error("the logits of softmax are too sharp to integrate over") {}
};

/// By integrals, to about 12 digits: 1/Z^k of a normaliser Z is an integral over exp(-t Z), which factors over keys;
/// the expectation of two rows over one key is a series of Hermite polynomials (Mehler). For n >= 2 keys, logit_std s
/// >= 0 and correlation in [-1, 1]; n s beyond what the grids hold throws LogitsTooSharp.
[[nodiscard]] SoftmaxMoments softmax_moments(Eigen::Index keys, double logit_std, double correlation);
/// Of one row with itself, u = w.
[[nodiscard]] SoftmaxMoments softmax_moments(Eigen::Index keys, double logit_std);

}  // namespace widelimit::propagation
