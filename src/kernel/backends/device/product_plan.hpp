#pragma once

#include "kernel/backends/device/matrix_free_source.hpp"
#include "kernel/backends/gram_plan.hpp"

namespace widelimit {

/// The sources of products under a plan of vectors that devices can compute; both must outlive them.
[[nodiscard]] MatrixFreeSource product_source_of(const GramPlan& plan, std::size_t scalar_bytes);

/// Bytes of an input in the memory of a device that multiplies without the matrix; 0 for other plans.
[[nodiscard]] double product_bytes_of_input(const GramPlan& plan, std::size_t scalar_bytes);

}  // namespace widelimit
