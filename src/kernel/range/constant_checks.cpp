#include "kernel/range/constant_checks.hpp"

#include <fmt/format.h>

#include <cmath>
#include <variant>

#include "kernel/range/variance_checks.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
void check_constant(const Node& node, const char* name, double constant) {
  const auto rounded = static_cast<Scalar>(constant);
  if (constant == 0 || (rounded != 0 && std::isfinite(rounded))) return;
  throw_named(node,
              NumericalError(fmt::format("the {} is {:g}, {}", name, constant, out_of_range_advice<Scalar>)));
}

template <typename Scalar>
void check_affine(const Node& node, const AffineNode& affine) {
  check_constant<Scalar>(node, "weight variance", affine.weight_variance);
  check_constant<Scalar>(node, "bias variance", affine.bias_variance);
}

}  // namespace

template <typename Scalar>
void check_constants(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (const auto* affine = std::get_if<AffineNode>(&node.operation)) check_affine<Scalar>(node, *affine);
    if (const auto* local = std::get_if<LocalAffineNode>(&node.operation))
      check_affine<Scalar>(node, local->affine);
    if (const auto* sum = std::get_if<SumNode>(&node.operation))
      for (const double factor : sum->factors) check_constant<Scalar>(node, "factor of a branch", factor);
    if (const auto* product = std::get_if<ProductNode>(&node.operation))
      check_constant<Scalar>(node, "factor of the branches", product->factor);
  }
}

template void check_constants<float>(const Graph&);
template void check_constants<double>(const Graph&);

}  // namespace widelimit
