#pragma once

#include <vector>

#include "layers/attention_sums.hpp"
#include "layers/elementwise_adjoint.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::layers {

/// A node r >= 0 of the interpolation: the adjoints of SumFunctions' four functions there and at -r, and the
/// functions and slopes that the adjoints of the entries need.
struct NodeSums {
  double point;                                       ///< r
  Eigen::Array4d behind = Eigen::Array4d::Zero();     ///< Adjoints of g_1 .. g_4.
  Eigen::Array4d mirrored = Eigen::Array4d::Zero();   ///< Adjoints of g_1 .. g_4 at -r.
  Eigen::Array4d functions = Eigen::Array4d::Zero();  ///< g_1 .. g_4
  Eigen::Array4d slopes = Eigen::Array4d::Zero();     ///< Their derivatives in r.
};

/// The backward pass through SumFunctions, at `nodes` with adjoints. Fills the nodes' functions and slopes, adds to
/// `bars`, and adds to the adjoints of the variances of the keys. p q and c^2 count as equal if they differ by no
/// more than `rounding` of p q. Returns the nodes at -r with their functions and slopes.
std::vector<NodeSums> homogeneous_adjoint(const numerics::Activation& zeta, const EncodedPair& encoded,
                                          double rounding, LogitVariances& left, LogitVariances& right,
                                          std::vector<NodeSums>& nodes, EncodedPair& bars, StopRequest stop);

/// 1 / (2 p), or 0 at a variance of 0.
[[nodiscard]] inline Vector<double> half_over(const Vector<double>& variances) {
  return variances.unaryExpr([](double p) { return p > 0 ? 0.5 / p : 0.0; });
}

}  // namespace widelimit::layers
