#pragma once

#include <cstddef>
#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// Whether the slopes of a stage grow without bound as a pair's correlation goes to 1: of what is multiplied by the NTK
/// where phi has a kink (ReLU), of the NNGP too where it jumps (sign).
enum class Steepness { bounded, of_ntk, of_both };

/// Found by the stage's adjoint at correlations near 1, so that stages and duals of users are recognised as well. A
/// stage without an adjoint, or one that cannot take a variance of 1, counts as bounded.
[[nodiscard]] Steepness steepness_of(const RowStage& stage);

/// [node]: whether derivatives with or without NTK read a slope that is not bounded.
[[nodiscard]] std::vector<bool> steep_nodes(const Graph& graph, bool with_ntk);

/// What is lost of 1 - |correlation| by the roundings of float, in an entry whose 1 - |correlation| is `tie_distance`,
/// is a few 1e-4 of it. In nearer entries float has fewer digits of a steep slope, down to none.
constexpr double tie_distance = 1.0 / 1024;

/// The number of entries nearer than tie_distance to correlation 1 or -1. Entries without a variance are not counted.
template <typename Scalar>
std::size_t count_near_ties(const Scalar* covariance, const Scalar* left_variance,
                            const Scalar* right_variance, std::size_t size) {
  constexpr auto least_square = static_cast<Scalar>(1 - 2 * tie_distance);
  std::size_t count = 0;
  for (std::size_t i = 0; i < size; ++i)
    // Guards of planes have variances of 0. Quotients stay in the range where the product of two variances leaves it.
    count += left_variance[i] > 0 && right_variance[i] > 0 &&
                     (covariance[i] / left_variance[i]) * (covariance[i] / right_variance[i]) > least_square
                 ? 1
                 : 0;
  return count;
}

}  // namespace widelimit
