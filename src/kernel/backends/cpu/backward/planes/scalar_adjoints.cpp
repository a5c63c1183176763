#include "kernel/backends/cpu/backward/planes/scalar_adjoints.hpp"

#include <algorithm>

namespace widelimit {
namespace {

/// Row kernels add up in the type of their numbers. Float is accurate enough for short rows, whose sums are added in
/// double.
template <typename Body>
double sum_of_parts(std::size_t count, const Body& body) {
  constexpr std::size_t most = 512;
  double sum = 0;
  for (std::size_t begin = 0; begin < count; begin += most) sum += body(begin, std::min(most, count - begin));
  return sum;
}

template <typename Scalar>
double sum_of(const Scalar* numbers, std::size_t count) {
  if (numbers == nullptr) return 0;
  return sum_of_parts(count, [&](std::size_t begin, std::size_t size) {
    return numerics::linear_rows<Scalar>().sum(numbers + begin, size);
  });
}

/// The sum over entries of K K-bar + T T-bar.
template <typename Scalar>
double inner_product(const Plane<Scalar>& value, const Plane<Scalar>& adjoint, std::size_t count) {
  const auto& rows = numerics::linear_rows<Scalar>();
  return sum_of_parts(count, [&](std::size_t begin, std::size_t size) {
    const double nngp = rows.dot(value.nngp + begin, adjoint.nngp + begin, size);
    return adjoint.ntk == nullptr ? nngp : nngp + rows.dot(value.ntk + begin, adjoint.ntk + begin, size);
  });
}

}  // namespace

ScalarAdjoints::ScalarAdjoints(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    first_.push_back(values_.size());
    values_.resize(values_.size() + scalars_of(node.operation).size(), 0.0);
  }
}

/// With K' = w S + b and T' = K' + w R (T' = w R if no weights are trained), dL/dw is the sum of K'-bar S + T'-bar (S
/// + R), or K'-bar S + T'-bar R. The weighted sums w S and w R are found as K' - b and T' - K', so that the planes
/// before the layer need not stay; only the division by w remains.
template <typename Scalar>
void ScalarAdjoints::add(NodeId id, const AffineNumbers& numbers, const Plane<Scalar>& value,
                         const Plane<Scalar>& adjoint, std::size_t count) {
  double of_bias = sum_of(adjoint.nngp, count);
  if (numbers.trained) of_bias += sum_of(adjoint.ntk, count);
  const double of_sums = inner_product(value, adjoint, count) - numbers.bias_variance * of_bias;
  values_[first_[id]] += of_sums / numbers.weight_variance;
  values_[first_[id] + 1] += of_bias;
}

template <typename Scalar>
void ScalarAdjoints::add(NodeId id, std::size_t k, double divisor, const Plane<Scalar>& value,
                         const Plane<Scalar>& adjoint, std::size_t count) {
  values_[first_[id] + k] += inner_product(value, adjoint, count) / divisor;
}

void ScalarAdjoints::add(const ScalarAdjoints& other) {
  for (std::size_t i = 0; i < values_.size(); ++i) values_[i] += other.values_[i];
}

template void ScalarAdjoints::add(NodeId, const AffineNumbers&, const Plane<float>&, const Plane<float>&,
                                  std::size_t);
template void ScalarAdjoints::add(NodeId, const AffineNumbers&, const Plane<double>&, const Plane<double>&,
                                  std::size_t);
template void ScalarAdjoints::add(NodeId, std::size_t, double, const Plane<float>&, const Plane<float>&,
                                  std::size_t);
template void ScalarAdjoints::add(NodeId, std::size_t, double, const Plane<double>&, const Plane<double>&,
                                  std::size_t);

}  // namespace widelimit
