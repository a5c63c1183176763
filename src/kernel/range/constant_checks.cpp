#include "kernel/range/constant_checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "kernel/plan/primitives.hpp"
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

}  // namespace

template <typename Scalar>
void check_constants(const Graph& graph) {
  for (const Node& node : graph.nodes)
    for (const auto& [name, number] : numbers_of(node.operation)) check_constant<Scalar>(node, name, number);
}

template void check_constants<float>(const Graph&);
template void check_constants<double>(const Graph&);

}  // namespace widelimit
