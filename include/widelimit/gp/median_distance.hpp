#pragma once

#include <optional>

#include "widelimit/kernel/inputs.hpp"

namespace widelimit::gp {

/// The median over all pairs of inputs that differ of the root mean square difference of their numbers, of 500 evenly
/// spaced inputs if there are more: a length for kernels of distances (the named networks matern, laplace and rbf).
/// Nothing for ragged inputs, for those with masks or graphs, and where no two inputs differ.
///
/// Errors  ArgumentError for a number that is not finite, naming its input.
template <typename Scalar>
[[nodiscard]] std::optional<double> median_distance(const Inputs<Scalar>& x);

}  // namespace widelimit::gp
