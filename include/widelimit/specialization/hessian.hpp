#pragma once

#include <cstdint>

#include "widelimit/run_control.hpp"
#include "widelimit/specialization/activation.hpp"

namespace widelimit::specialization {

/// A point of the curve L v = L + exp(b) at which the loss of softmax1 with m = r = 0 does not change.
struct Softmax1Point {
  double b = 0;  ///< The same for all heads.
  double v = 1;
};

/// Where the flow of softmax1 at m = r = 0 ends from a common b0 and v0: b - L exp(-b) + v^2 / (2H) is conserved.
///
/// Errors   ArgumentError for L < 2, H < 1, non-finite starts; NumericalError if the end lies outside b in
///          [-60, 60].
[[nodiscard]] Softmax1Point softmax1_fixed_point(Index tokens, Index heads, double b0 = 0, double v0 = 1);

/// Coefficients of the loss to second order around m = 0, r = 0, common b, for heads with m E[theta] = 0:
///     c1 [sum S + |1^T m|^2] + (c2 + c4) 1^T m Cov m^T 1 - (c3 + c4) tr(m Cov m^T) + c5 (sum b)^2
/// on top of 1 - 1/L. Entries of the Hessian are twice these.
struct HessianConstants {
  double c1 = 0;
  double c2 = 0;
  double c3 = 0;
  double c4 = 0;
  double c5 = 0;
  double b = 0;  ///< The expansion point: for softmax1 on the curve L v = L + exp(b), else 0 and 1.
  double v = 1;
  double initial_pull = 0;  ///< c^(1): -grad m_h = c^(1) E[theta] at m = r = b = 0, v = 1.
};

/// At the point the flow reaches from b = 0, v = 1 (softmax1), at b = 0 otherwise. ArgumentError for L < 2 or
/// H < 1.
[[nodiscard]] HessianConstants hessian_constants(HeadActivation activation, Index tokens, Index heads);
/// softmax1 at a given common b on the curve; other activations ignore b. Errors as hessian_constants().
[[nodiscard]] HessianConstants hessian_constants_at(HeadActivation activation, Index tokens, Index heads,
                                                    double b);

/// The second-order form above for given m (H x F), S (H x H), bias shifts (H) and Cov (F x F). ArgumentError for other
/// shapes.
[[nodiscard]] double second_order_form(const HessianConstants& constants, const Matrix<double>& m,
                                       const Matrix<double>& S, const Vector<double>& b_shift,
                                       const Matrix<double>& covariance);

/// Growth rates per unit of tau along a unit eigenvector of Cov with the given eigenvalue.
struct EscapeRates {
  double split = 0;   ///< Heads move apart, sum_h m_h = 0 (needs H >= 2).
  double common = 0;  ///< All heads move together.
};
/// ArgumentError for heads < 1 and eigenvalue < 0.
[[nodiscard]] EscapeRates escape_rates(const HessianConstants& constants, Index heads, double eigenvalue);

/// Rate at which heads split along feature 1 from the unspecialised saddle m_h = (sqrt(nu1), 0) of flip2(nu1,
/// nu2); 1/rate is the slope of the specialisation time in ln(sqrt(D)/eta).
struct SplitRate {
  double rate = 0;
  double standard_error = 0;  ///< 0 for quadrature.
};
/// By the trapezoid rule with `points` nodes on [-span, span] for each of the L scores; cost points^L.
/// Errors   ArgumentError for L < 2 or more than 1e9 nodes, H < 2, negative nu, and activations other than
///          softmax and bayes.
[[nodiscard]] SplitRate split_rate_by_quadrature(HeadActivation activation, Index tokens, Index heads,
                                                 double nu1, double nu2, Index points = 81, double span = 9,
                                                 const RunControl& run = {});
/// By Monte Carlo over `count` draws; any L >= 2.
[[nodiscard]] SplitRate split_rate_by_sampling(HeadActivation activation, Index tokens, Index heads,
                                               double nu1, double nu2, Index count, std::uint64_t seed,
                                               const RunControl& run = {});

/// What one learned feature (column mbar, variance learned, sum_h mbar_h = 0) adds to the Hessian of a new
/// one (variance fresh) for softmax: k1 |mbar|^2 I + k2 Diag(mbar^2) + k3 mbar mbar^T. ArgumentError for L <
/// 2 or H < 1.
struct FourthOrder {
  double k1 = 0;
  double k2 = 0;
  double k3 = 0;
};
[[nodiscard]] FourthOrder fourth_order(Index tokens, Index heads, double variance_learned,
                                       double variance_new);

}  // namespace widelimit::specialization
