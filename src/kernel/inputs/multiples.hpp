#pragma once

#include <span>
#include <vector>

#include "network/graph.hpp"

/// Inputs that are multiples of each other, duplicates among them: their correlation is 1 or -1, where the
/// NTK of many activations has an infinite slope. The rounding errors of a matrix product, or of the layers,
/// would become their roots there.
namespace widelimit {

/// For every node: true if positive multiples are perfectly correlated after it, c^2 = pq, whatever their factors.
/// They are so after layers without biases that scale with their input, and after norms.
std::vector<bool> keeps_multiples(const Graph& graph);

/// The product of two input vectors, and whether one is a multiple of the other, up to the rounding of its entries.
struct VectorProduct {
  double mean;  ///< x x' / C
  bool are_multiples;
};

/// x x / C, exact up to a few roundings of a double.
template <typename Scalar>
double vector_variance(std::span<const Scalar> vector);

/// x x' / C, just as exact. The product of equal vectors has the bits of the variance of each.
template <typename Scalar>
VectorProduct vector_product(std::span<const Scalar> left, std::span<const Scalar> right);

/// A bound for vectors whose covariance c comes from a matrix product: if |c| is below this times sqrt(pq), they are
/// no multiples of each other.
template <typename Scalar>
Scalar least_correlation_of_multiples(Index channels);

}  // namespace widelimit
