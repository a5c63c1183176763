#pragma once

#include <functional>
#include <string>

#include "widelimit/numerics/blas_kernels.hpp"

namespace widelimit::numerics {

/// What the choice of OpenBLAS's kernels depends on, apart from OpenBLAS itself.
struct BlasChoice {
  std::string wanted;         ///< The newest kernels that the processor can run; empty if it is not known.
  std::string obstacle = {};  ///< Why OpenBLAS must stay as it is; empty if it need not.
  /// Whether products made with the kernels in use are right.
  std::function<bool()> are_right;
};

/// The newest kernels of OpenBLAS that this processor and system can run, by its instructions; empty if unknown.
[[nodiscard]] std::string kernels_for_processor();

/// Whether another part of the process may be in a call of the same OpenBLAS right now: OpenBLAS was loaded earlier
/// than this library, and there are threads that it did not start.
[[nodiscard]] bool others_may_use_blas();

/// Products, factorizations and solutions by OpenBLAS in both precisions, of sizes for its kernels of small and of
/// large matrices, beside plain loops. Takes some 7 ms and one of OpenBLAS's buffers.
[[nodiscard]] bool blas_is_right();

/// Has OpenBLAS use the newest right kernels. No other thread may be in a call of OpenBLAS, unless the choice says so.
[[nodiscard]] BlasKernels choose_blas_kernels(const BlasChoice& choice);

}  // namespace widelimit::numerics
