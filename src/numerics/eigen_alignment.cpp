#include "widelimit/eigen_alignment.hpp"

/// The header makes every program refer to the instance with its own alignment. Only that of the library is defined
/// here, so that a program compiled for other vector sizes does not link, instead of corrupting Eigen's matrices.
#if !WIDELIMIT_FIXED_EIGEN_ALIGNMENT

namespace widelimit::eigen {

template <int alignment, bool straight_from_malloc>
void compiled_with_the_alignment_of_the_library() {}

template void
compiled_with_the_alignment_of_the_library<EIGEN_DEFAULT_ALIGN_BYTES, EIGEN_MALLOC_ALREADY_ALIGNED == 1>();

}  // namespace widelimit::eigen

#endif
