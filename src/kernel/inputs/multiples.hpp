#pragma once

#include <span>
#include <vector>

#include "network/graph.hpp"

/// Inputs that are multiples of each other, duplicates among them: their correlation is 1 or -1, where the
/// NTK of many activations has an infinite slope. The rounding errors of a matrix product, or of the layers,
/// would become their roots there.
namespace widelimit {

/// For every node: true if the covariance of positive multiples is perfect there, c^2 = pq, whatever their
/// factor. It is after layers without biases that scale with their input, and after norms.
std::vector<bool> keeps_multiples(const Graph& graph);

/// Two input vectors: their product, and whether one is a multiple of the other but for the rounding of its
/// entries.
struct VectorProduct {
  double mean;  ///< x x' / C
  bool are_multiples;
};

/// x x / C, to a few roundings of a double.
template <typename Scalar>
double vector_variance(std::span<const Scalar> vector);

/// As exact. The product of equal vectors has the bits of each one's with itself.
template <typename Scalar>
VectorProduct vector_product(std::span<const Scalar> left, std::span<const Scalar> right);

/// Of vectors whose covariance c comes from a matrix product: |c| below this times sqrt(pq) cannot be that of
/// multiples.
template <typename Scalar>
Scalar least_correlation_of_multiples(Index channels);

}  // namespace widelimit
