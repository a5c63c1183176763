#pragma once

#include <string_view>

#include "numerics/arguments.hpp"

/// Argument checks of this folder.
namespace widelimit::covariance_sde {

using numerics::require_at_least;
using numerics::require_at_most;
using numerics::require_finite;
using numerics::require_index;
using numerics::require_not_negative;
using numerics::require_positive;
using numerics::require_shape;

/// ArgumentError unless `v` is a covariance: not empty, square, finite, symmetric to 1e-12 and positive
/// semidefinite to 1e-10 of its largest entry or eigenvalue.
void require_covariance(std::string_view where, const Matrix<double>& v);

/// ArgumentError if a token has the variance 0, and so no correlation with any other. `v` is a covariance.
void require_variances(std::string_view where, const Matrix<double>& v);

}  // namespace widelimit::covariance_sde
