#include "kernel/inputs/multiples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/plan/primitives.hpp"
#include "numerics/rows/precise_products.hpp"

namespace widelimit {
namespace {

/// A bound for 1 - |correlation|. In float, variances are rounded, so that an angle of the root of one rounding is
/// lost anyway. In double, it is the error of the products themselves.
template <typename Scalar>
constexpr double angle_tolerance = (sizeof(Scalar) == 4 ? 0.5 : 8) * std::numeric_limits<Scalar>::epsilon();

}  // namespace

std::vector<bool> keeps_multiples(const Graph& graph) {
  std::vector<Degree> degrees;
  std::vector<bool> keeps;
  for (const Node& node : graph.nodes) {
    std::vector<Degree> inputs;
    for (const NodeId input : node.inputs) inputs.push_back(degrees[input]);
    degrees.push_back(degree_after(node.operation, inputs));
    keeps.push_back(degrees.back().has_value());
  }
  return keeps;
}

template <typename Scalar>
double vector_variance(std::span<const Scalar> vector) {
  const double square = numerics::precise_products<Scalar>().dot(vector.data(), vector.data(), vector.size());
  return square / static_cast<double>(vector.size());
}

template <typename Scalar>
VectorProduct vector_product(std::span<const Scalar> left, std::span<const Scalar> right) {
  const auto& products = numerics::precise_products<Scalar>();
  const double mean = products.dot(left.data(), right.data(), left.size()) / static_cast<double>(left.size());
  const double product = std::sqrt(vector_variance(left)) * std::sqrt(vector_variance(right));
  return {mean, 1 - std::abs(mean) / product <= angle_tolerance<Scalar>};
}

/// A matrix product adds up blocks of some hundred channels, each one after the other, and then the blocks. Its
/// rounding errors therefore stop growing with the number of channels.
template <typename Scalar>
Scalar least_correlation_of_multiples(Index channels) {
  const auto roundings = static_cast<Scalar>(16 + std::min<Index>(channels, 1024));
  return 1 - roundings * std::numeric_limits<Scalar>::epsilon();
}

template double vector_variance(std::span<const float>);
template double vector_variance(std::span<const double>);
template VectorProduct vector_product(std::span<const float>, std::span<const float>);
template VectorProduct vector_product(std::span<const double>, std::span<const double>);
template float least_correlation_of_multiples(Index);
template double least_correlation_of_multiples(Index);

}  // namespace widelimit
