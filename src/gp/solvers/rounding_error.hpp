#pragma once

#include "widelimit/gp/kernel_operator.hpp"

namespace widelimit::gp {

/// The size, in spectral norm, of the errors of a matrix whose entries are rounded to numbers of machine epsilon
/// `entry_epsilon`: epsilon |K|_F / sqrt(n), see gram_error(). The norm comes from one pass, to some percent.
[[nodiscard]] double rounding_error(const KernelOperator& gram, double entry_epsilon);

/// How far K + lambda I must stand above the error of K: predictions from directions that are nothing but
/// error then have a tenth of the targets' size, and their squares no weight.
inline constexpr double signal_to_noise = 10;

/// Relative regularisers below this are not RegulariserScore::above_noise unless K stands above its errors by itself.
[[nodiscard]] double noise_floor(const KernelOperator& gram);

}  // namespace widelimit::gp
