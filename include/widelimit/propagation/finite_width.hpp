#pragma once

#include <optional>

#include "widelimit/propagation/parameters.hpp"

/// How far networks of finite width scatter about their limit (docs/theory/signal-propagation.md, section 12).
namespace widelimit::propagation {

/// A range of an exponent.
struct ExponentInterval {
  double low = 0, high = 0;
};

/// How exponents of networks of one width scatter, over all of their blocks from equal tokens: leading order in
/// 1 / width, in which logarithms of squared gradients and of gaps are Gaussian with variances that grow as
/// depth / width.
struct WidthSpread {
  double gradient_variance = 0;  ///< of ln of the squared gradient
  double angle_variance = 0;     ///< of ln of the mean 1 - cosine of nearly equal tokens
  /// Into which 90 of 100 networks fall: growth in each block of the squared gradient, and of 1 - cosine, as
  /// logarithms. None for angles that one block closes (alpha_A = 1).
  ExponentInterval lambda_g;
  std::optional<ExponentInterval> lambda_a_log;
};

/// Full attention; from the fixed point of the norm, or from norm 1 where there is none.
/// Cost: O(depth) and some thousand calls of the activation for each of its layers.
/// Errors: as require_parameters; ArgumentError unless width >= 2 and depth >= 1; NumericalError if a block leaves
///         nothing of the gradient, or the MLP's moments are not finite.
[[nodiscard]] WidthSpread width_spread(const Parameters& parameters, Index width, Index depth);

/// Most blocks that limit_depth() looks at.
inline constexpr Index deepest_limit = 1'000'000;

/// The depth up to which the limit says what single networks do: that of the last block before either variance passes
/// 1, beyond which a few networks make the mean of the squared gradient. 0 if the first block passes it; none if
/// deepest_limit blocks do not. Cost and errors: as width_spread() at twice the depth.
[[nodiscard]] std::optional<Index> limit_depth(const Parameters& parameters, Index width);

}  // namespace widelimit::propagation
