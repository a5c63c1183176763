#pragma once

#include <string>

namespace widelimit::numerics {

/// The kernels that OpenBLAS multiplies with. By itself it goes by the model of the processor and takes its oldest
/// kernels for a model that is younger than itself; so, before the first product, they are chosen by what the processor
/// can, once products made with them are right. A value of OPENBLAS_CORETYPE is left alone.
struct BlasKernels {
  std::string used;      ///< OpenBLAS's name of the processor that they were written for: "SkylakeX".
  std::string by_model;  ///< What OpenBLAS took when it was loaded.
  std::string warning =
      {};  ///< Why older kernels are used than the processor has instructions for; else empty.
};

/// Those in use. Costs nothing after the first call, which happens when the library is loaded.
[[nodiscard]] const BlasKernels& blas_kernels();

}  // namespace widelimit::numerics
