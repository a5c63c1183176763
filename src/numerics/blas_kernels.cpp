#include "widelimit/numerics/blas_kernels.hpp"

#include "numerics/blas_choice.hpp"
#include "numerics/blas_memory.hpp"

namespace widelimit::numerics {
namespace {

/// Why OpenBLAS must stay as it is.
std::string obstacle() {
  if (others_may_use_blas())
    return "it was loaded before this library, and other threads may be computing with it; set "
           "OPENBLAS_CORETYPE "
           "before the program starts";
  // Without its buffer OpenBLAS would ask for one for ever.
  if (blas_buffers_that_fit(1, malloc_arena_bytes) == 0)
    return "there is no address space in which to check others (ulimit -v)";
  return "";
}

/// OpenBLAS reads its table of kernels several times in a call, so they are chosen while the library is loaded: before
/// main() there is one thread.
[[maybe_unused]] const BlasKernels& chosen_at_load = blas_kernels();

}  // namespace

const BlasKernels& blas_kernels() {
  static const BlasKernels kernels =
      choose_blas_kernels({kernels_for_processor(), obstacle(), blas_is_right});
  return kernels;
}

}  // namespace widelimit::numerics
