#pragma once

#include "widelimit/network/shape.hpp"

namespace widelimit::layers {

/// Standard parametrisation of a layer with weights: z = x W / sqrt(s) + beta, where W, of variance sigma_w^2 s / (N F)
/// with F positions of a filter, and beta, of variance sigma_b^2, are trained. The NNGP is that of the standard
/// normal parametrisation; in the NTK the gradients of W count N / s times a filter's positions, those of beta once:
/// T' = (N/s) sum_o K + 1 + (w/F) sum_o T, without the 1 if there are no biases.
///
/// A finite network with N' channels instead of N uses s N' / N instead of s, so that the limit stays the same.
///
/// Source  Sohl-Dickstein, Novak, Schoenholz, Lee 2020 (arXiv:2001.07301).
struct StandardParametrisation {
  Index input_width;         ///< N >= 1: channels before the layer.
  double width_scale = 1;    ///< s > 0
  bool zero_biases = false;  ///< Biases that begin at 0 and are trained; needs a bias_variance of 0.

  friend bool operator==(const StandardParametrisation&, const StandardParametrisation&) = default;
};

/// The parameters of a layer that gradient descent changes. The NNGP does not depend on it; the NTK has no gradients of
/// what stays as it was drawn: T' = [w K if weights are trained] + [b if biases are] + w T, and likewise in the
/// standard parametrisation.
enum class Trainable { all, weights, biases, none };

}  // namespace widelimit::layers
