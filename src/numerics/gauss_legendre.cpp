#include "numerics/gauss_legendre.hpp"

#include <boost/math/quadrature/gauss.hpp>

namespace widelimit::numerics {
namespace {

/// Boost lists the nodes that are not negative, ascending.
template <unsigned Order>
GaussLegendre make_rule() {
  using Rule = boost::math::quadrature::gauss<double, Order>;
  const auto& abscissa = Rule::abscissa();
  const auto& weights = Rule::weights();
  GaussLegendre rule;
  for (std::size_t i = abscissa.size(); i-- > 0;) {
    if (abscissa[i] == 0) continue;
    rule.nodes.push_back(-abscissa[i]);
    rule.weights.push_back(weights[i]);
  }
  rule.nodes.insert(rule.nodes.end(), abscissa.begin(), abscissa.end());
  rule.weights.insert(rule.weights.end(), weights.begin(), weights.end());
  return rule;
}

}  // namespace

const GaussLegendre& gauss_legendre_15() {
  static const GaussLegendre rule = make_rule<15>();
  return rule;
}

const GaussLegendre& gauss_legendre_10() {
  static const GaussLegendre rule = make_rule<10>();
  return rule;
}

}  // namespace widelimit::numerics
