#pragma once

#include <cmath>
#include <map>
#include <numbers>
#include <vector>

#include "layers/attention_sums.hpp"

namespace widelimit::layers {

/// Interpolates a function on [-1, 1] that is smooth inside but singular at the ends, like the dual
/// activations of homogeneous functions: on the intervals 1 - 2^-k <= |rho| <= 1 - 2^-(k+1), k = 0, 1, ...,
/// where the distance to the singularity is at least the interval's length, Chebyshev interpolation gains a
/// factor 3 + sqrt(8) a node. Intervals are tabulated when they are first asked for. |rho| = 1 is a table of
/// its own.
///
/// Function has a type Value (with the fields of AttentionSums) and Value operator()(double rho) const.
template <typename Function>
class GradedInterpolation {
 public:
  using Value = typename Function::Value;

  GradedInterpolation(const Function& function, int nodes) : function_{function}, nodes_{nodes} {
    for (int i = 0; i < nodes; ++i) {
      const double angle = std::numbers::pi * (2 * i + 1) / (2 * nodes);
      node_.push_back(std::cos(angle));
      weight_.push_back((i % 2 == 0 ? 1 : -1) * std::sin(angle));  // barycentric
    }
  }

  Value operator()(double rho) {
    const double sign = rho < 0 ? -1 : 1;
    const double distance = 1 - std::abs(rho);
    if (distance <= 0) return end_value(sign);
    int exponent = 0;
    const double mantissa =
        std::frexp(distance, &exponent);  // in [1/2, 1): distance in [2^(exponent-1), 2^exponent)
    const int k = mantissa == 0.5 ? 1 - exponent : -exponent;  // distance in (2^-(k+1), 2^-k]
    const double outer = std::exp2(-k), centre = 0.75 * outer, radius = 0.25 * outer;
    const auto& table = interval(sign, k, centre, radius);
    return interpolate(table, (distance - centre) / radius);
  }

 private:
  const Value& end_value(double sign) {
    auto& table = tables_[{sign, -1}];
    if (table.empty()) table.push_back(function_(sign));
    return table.front();
  }

  const std::vector<Value>& interval(double sign, int k, double centre, double radius) {
    auto& table = tables_[{sign, k}];
    if (table.empty())
      for (const double node : node_) table.push_back(function_(sign * (1 - (centre + radius * node))));
    return table;
  }

  /// The barycentric formula at x in [-1, 1].
  Value interpolate(const std::vector<Value>& table, double x) const {
    Value sum;
    double norm = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
      const double difference = x - node_[i];
      if (difference == 0) return table[i];
      const double weight = weight_[i] / difference;
      norm += weight;
      add(table[i], weight, sum);
    }
    Value result;
    add(sum, 1 / norm, result);
    return result;
  }

  static void add(const AttentionSums& term, double factor, AttentionSums& sum) {
    sum.values += factor * term.values;
    sum.value_ntks += factor * term.value_ntks;
    sum.value_logits += factor * term.value_logits;
    sum.value_logit_ntks += factor * term.value_logit_ntks;
  }

  const Function& function_;
  int nodes_;
  std::vector<double> node_;
  std::vector<double> weight_;
  std::map<std::pair<double, int>, std::vector<Value>> tables_;  ///< (sign, interval) -> values at the nodes
};

}  // namespace widelimit::layers
