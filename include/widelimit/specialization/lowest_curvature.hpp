#pragma once

#include "widelimit/specialization/flow.hpp"

namespace widelimit::specialization {

/// The direction in which the curvature of a loss is lowest.
struct LowestCurvature {
  /// Lowest eigenvalue of the Hessian. If the gradient is 0 and this is negative, the point is a saddle, and a
  /// flow leaves it at the rate -eigenvalue per unit of tau.
  double eigenvalue = 0;
  HeadParameters direction;  ///< Its eigenvector; squares of all entries sum to 1. The sign is arbitrary.
};

/// The lowest curvature of the population loss in the directions that a flow of this variant can move, by Lanczos
/// iterations on differences of gradients.
///
/// Rotations r O, which change neither S nor the population loss, are left out (variant frame): on samples their
/// curvature is noise.
/// Accuracy  about 1e-5 with samples in float, 1e-7 in double, in addition to the error of the samples themselves.
/// Errors    those of sampled_loss.
/// Cost      two gradients in each iteration; as many iterations as there are parameters, at most 200.
template <typename Scalar>
[[nodiscard]] LowestCurvature lowest_curvature(HeadActivation activation, const HeadParameters& parameters,
                                               const SampleSet<Scalar>& samples,
                                               FlowVariant variant = FlowVariant::frame,
                                               const RunControl& run = {});

/// The highest eigenvalue of the same Hessian, by the same iterations: Euler's method with a step above 2 over it
/// leaves the flow.
template <typename Scalar>
[[nodiscard]] double highest_curvature(HeadActivation activation, const HeadParameters& parameters,
                                       const SampleSet<Scalar>& samples,
                                       FlowVariant variant = FlowVariant::frame, const RunControl& run = {});

}  // namespace widelimit::specialization
