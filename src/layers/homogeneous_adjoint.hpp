#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "layers/attention_sums.hpp"
#include "layers/dual_rows.hpp"
#include "layers/elementwise_adjoint.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::layers {

/// At a node r: the adjoints of SumFunctions' four functions there, and what their own adjoints need to know.
struct NodeSums {
  double point;                                       ///< r
  Eigen::Array4d behind = Eigen::Array4d::Zero();     ///< Adjoints of g_1 .. g_4.
  Eigen::Array4d functions = Eigen::Array4d::Zero();  ///< g_1 .. g_4
  Eigen::Array4d slopes = Eigen::Array4d::Zero();     ///< Their derivatives in r.
};

/// The way back through SumFunctions at a list of nodes. E and D are homogeneous in the variances p and q and the
/// covariance c, and Price's theorem gives dE/dc = D, so that Euler's relations say the rest: with h = E-bar E - c c-bar
///     p-bar = h / (2 p),  q-bar = h / (2 q),  c-bar = E-bar D + D-bar dD/dc,
/// and dD/dc = (b - a)^2 / (2 pi sqrt(pq - c^2)) for the slopes a and b. At c^2 = pq, up to `rounding`, that counts as 0.
class HomogeneousAdjoint {
 public:
  HomogeneousAdjoint(const numerics::Activation& zeta, const EncodedPair& encoded, double rounding,
                     StopRequest stop)
      : zeta_{zeta}, encoded_{encoded}, rounding_{rounding}, stop_{stop} {
    const auto [negative, positive] = *zeta.homogeneous();
    bend_ = (positive - negative) * (positive - negative) / (2 * std::numbers::pi);
  }

  /// Fills the nodes' functions and slopes; adds to `bars`, and to the adjoints of the variances of the keys.
  void operator()(LogitVariances& left, LogitVariances& right, std::vector<NodeSums>& nodes,
                  EncodedPair& bars) const {
    constexpr Index block = 256;
    const Index columns = encoded_.keys.cols(), entries = encoded_.keys.size();
    const PreparedVariances prepared_left(zeta_, left.keys), prepared_right(zeta_, right.keys);
    Matrix<double> euler = Matrix<double>::Zero(encoded_.keys.rows(), columns);
    for (Index begin = 0; begin < entries; begin += block) {
      stop_.check();
      DualRows duals(zeta_, std::min(block, entries - begin));
      duals.select(prepared_left, prepared_right, columns, begin);
      const Array products = products_of(left.keys, right.keys, begin, duals.values().size());
      for (NodeSums& node : nodes) {
        duals.compute(node.point, encoded_.keys.data() + begin);
        go_back(duals, products, begin, node, bars, euler);
      }
    }
    left.adjoint += half_over(left.keys).cwiseProduct(euler.rowwise().sum());
    right.adjoint += half_over(right.keys).cwiseProduct(euler.colwise().sum().transpose());
  }

  /// 1 / (2 p), or 0 at a variance of 0.
  [[nodiscard]] static Vector<double> half_over(const Vector<double>& variances) {
    return variances.unaryExpr([](double p) { return p > 0 ? 0.5 / p : 0.0; });
  }

 private:
  using Array = Eigen::Array<double, Eigen::Dynamic, 1>;

  /// p q of a block of entries (i, j).
  static Array products_of(const Vector<double>& left, const Vector<double>& right, Index begin, Index size) {
    Array products(size);
    for (Index n = 0; n < size; ++n)
      products[n] = left[(begin + n) / right.size()] * right[(begin + n) % right.size()];
    return products;
  }

  static auto part(const Matrix<double>& matrix, Index begin, Index size) {
    return Eigen::Map<const Array>(matrix.data() + begin, size);
  }
  static auto part(Matrix<double>& matrix, Index begin, Index size) {
    return Eigen::Map<Array>(matrix.data() + begin, size);
  }

  void go_back(const DualRows& duals, const Array& products, Index begin, NodeSums& node, EncodedPair& bars,
               Matrix<double>& euler) const {
    const Index size = products.size();
    const auto values = part(encoded_.values, begin, size), keys = part(encoded_.keys, begin, size);
    const auto e = duals.values().array(), d = duals.derivatives().array();
    node.functions[0] += (values * e).sum();
    node.slopes[0] += (values * keys * d).sum();
    part(bars.values, begin, size) += node.behind[0] * e;
    Array e_bar = node.behind[0] * values, c_bar(size);
    if (encoded_.logit_ntks.size() > 0)
      add_ntk(duals, products, begin, node, bars, e_bar, c_bar);
    else
      c_bar = e_bar * d;
    part(bars.keys, begin, size) += node.point * c_bar;
    part(euler, begin, size) += e_bar * e - node.point * keys * c_bar;
  }

  /// What the NTK's sums add; c_bar becomes E-bar D + D-bar dD/dc.
  void add_ntk(const DualRows& duals, const Array& products, Index begin, NodeSums& node, EncodedPair& bars,
               Array& e_bar, Array& c_bar) const {
    const Index size = products.size();
    const auto values = part(encoded_.values, begin, size), keys = part(encoded_.keys, begin, size),
               value_ntks = part(encoded_.value_ntks, begin, size),
               logit_ntks = part(encoded_.logit_ntks, begin, size);
    const auto e = duals.values().array(), d = duals.derivatives().array();
    const Array rest = products - (node.point * keys).square();
    const Array bend = (rest > rounding_ * products).select(bend_ / rest.sqrt(), 0.0);
    const Array of_logits = node.behind[2] * keys + node.behind[3] * logit_ntks;
    node.functions[1] += (value_ntks * e).sum();
    node.functions[2] += (values * keys * d).sum();
    node.functions[3] += (values * logit_ntks * d).sum();
    node.slopes[1] += (value_ntks * keys * d).sum();
    node.slopes[2] += (values * keys.square() * bend).sum();
    node.slopes[3] += (values * logit_ntks * keys * bend).sum();
    part(bars.values, begin, size) += d * of_logits;
    part(bars.value_ntks, begin, size) += node.behind[1] * e;
    part(bars.keys, begin, size) += node.behind[2] * values * d;
    part(bars.logit_ntks, begin, size) += node.behind[3] * values * d;
    e_bar += node.behind[1] * value_ntks;
    c_bar = e_bar * d + values * of_logits * bend;
  }

  const numerics::Activation& zeta_;
  const EncodedPair& encoded_;
  double rounding_;
  StopRequest stop_;
  double bend_ = 0;  ///< (b - a)^2 / (2 pi)
};

}  // namespace widelimit::layers
