#pragma once

#include "widelimit/gp/kernel_operator.hpp"

namespace widelimit::gp {

/// The size, in spectral norm, of the errors of a matrix whose entries are rounded to numbers of machine epsilon
/// `entry_epsilon`: epsilon |K|_F / sqrt(n), see gram_error(). The norm comes from one pass, to some percent.
[[nodiscard]] double rounding_error(const KernelOperator& gram, double entry_epsilon);

}  // namespace widelimit::gp
