#include "kernel/inputs/multiples.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "numerics/rows/precise_products.hpp"

namespace widelimit {
namespace {

/// The degree with which a kernel scales, K(a x, b x') = (ab)^degree K(x, x') for a, b > 0; none if it does not. A
/// kernel of degree 0 does not change when its inputs are multiplied, so that multiples stay perfectly correlated
/// through any layer except dropout.
using Degree = std::optional<int>;

Degree degree_of_input(const std::vector<FeatureTransform>& transforms) {
  const bool normalises = std::any_of(transforms.begin(), transforms.end(), [](const auto& transform) {
    return std::holds_alternative<FeatureNorm>(transform);
  });
  return normalises ? 0 : 1;
}

Degree degree_after(const RowStage& stage, const Degree& input) {
  if (!input) return {};
  switch (stage.multiples()) {
    case Multiples::kept:
      return input;
    case Multiples::equalised:
      return 0;
    case Multiples::equal:
      return input == 0 ? input : Degree{};
    case Multiples::unknown:
      break;
  }
  return {};
}

Degree degree_of(const Node& node, const std::vector<Degree>& degrees) {
  if (const auto* input = std::get_if<InputNode>(&node.operation)) return degree_of_input(input->transforms);
  if (node.inputs.empty()) return {};
  const Degree first = degrees[node.inputs[0]];
  if (const auto* affine = std::get_if<AffineNode>(&node.operation))
    // A bias does not scale with the input. It does no harm to kernels that do not scale either.
    return affine->bias_variance == 0 || first == 0 ? first : Degree{};
  if (const RowStage* row = row_stage_of(node.operation)) return degree_after(*row, first);
  const auto all = [&](const auto& holds) {
    return std::all_of(node.inputs.begin(), node.inputs.end(), holds);
  };
  if (std::holds_alternative<SumNode>(node.operation))
    // A sum of terms that scale differently is not proportional to either.
    return all([&](NodeId input) { return degrees[input] == first; }) ? first : Degree{};
  if (!std::holds_alternative<ProductNode>(node.operation)) return {};
  if (!all([&](NodeId input) { return degrees[input].has_value(); })) return {};
  int sum = 0;
  for (const NodeId input : node.inputs) sum += *degrees[input];
  return sum;
}

/// A bound for 1 - |correlation|. In float, variances are rounded, so that an angle of the root of one rounding is
/// lost anyway. In double, it is the error of the products themselves.
template <typename Scalar>
constexpr double angle_tolerance = (sizeof(Scalar) == 4 ? 0.5 : 8) * std::numeric_limits<Scalar>::epsilon();

}  // namespace

std::vector<bool> keeps_multiples(const Graph& graph) {
  std::vector<Degree> degrees;
  std::vector<bool> keeps;
  for (const Node& node : graph.nodes) {
    degrees.push_back(degree_of(node, degrees));
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
