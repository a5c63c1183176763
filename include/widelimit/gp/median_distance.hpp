#pragma once

#include <optional>

#include "widelimit/kernel/inputs.hpp"

namespace widelimit::gp {

/// The median over all pairs of inputs that differ of the root mean square difference of their numbers, of 500 evenly
/// spaced inputs if there are more: a length for kernels of distances (models: matern, laplace, rbf). Nothing for inputs
/// of several sizes, with masks or with graphs, and where no two inputs differ. Masked numbers would count.
template <typename Scalar>
[[nodiscard]] std::optional<double> median_distance(const Inputs<Scalar>& x);

}  // namespace widelimit::gp
