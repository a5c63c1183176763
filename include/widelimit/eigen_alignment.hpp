#pragma once

#include <Eigen/Core>

#include "widelimit/build_options.hpp"

/// Refuses to compile or link programs in which Eigen would handle memory in two ways.
///
/// Eigen chooses the alignment of its matrices, and whether their memory comes straight from malloc, by the
/// compiler's flags: -march=native, -mavx and GCC's address sanitizer change it. A program that mixes two choices
/// frees or loads matrices in another way than they were allocated. That happens even if no matrix is passed
/// between the parts, because the linker keeps a single copy of every function of Eigen. See
/// docs/matrices.md.
#if WIDELIMIT_FIXED_EIGEN_ALIGNMENT

static_assert(
    EIGEN_DEFAULT_ALIGN_BYTES == 64 && EIGEN_MAX_STATIC_ALIGN_BYTES == 64 &&
        EIGEN_MALLOC_ALREADY_ALIGNED == 0,
    "widelimit was built with EIGEN_MAX_ALIGN_BYTES=64 and EIGEN_MAX_STATIC_ALIGN_BYTES=64, so that "
    "Eigen allocates alike whatever the compiler's flags. Compile every file of the program that "
    "includes Eigen with both definitions, as linking the CMake target widelimit::widelimit does, "
    "and with no other that changes Eigen's alignment. See docs/matrices.md.");

#else

namespace widelimit::eigen {

/// Defined in the library only for its own choice: an undefined reference to this function means that a file
/// of the program was compiled with flags for which Eigen aligns differently from the library.
template <int alignment, bool straight_from_malloc>
void compiled_with_the_alignment_of_the_library();

namespace {
[[gnu::used]] void (*const check_alignment)() =
    &compiled_with_the_alignment_of_the_library<EIGEN_DEFAULT_ALIGN_BYTES, EIGEN_MALLOC_ALREADY_ALIGNED == 1>;
}  // namespace

}  // namespace widelimit::eigen

#endif
