#pragma once

#include <cstddef>

/// OpenBLAS takes a buffer for every thread that it starts, and for every thread that calls it; where the
/// system has no address space left for one (ulimit -v), it asks for it again for ever. So we ask first.
namespace widelimit::numerics {

/// Size of a buffer, as Debian builds OpenBLAS for x86-64.
inline constexpr std::size_t blas_buffer_bytes = std::size_t{128} << 20;

/// How many of so many buffers, each with `more_bytes` beside it, the system would give. Allocates nothing
/// else and calls the system only: it may run before any library is initialised.
int blas_buffers_that_fit(int wanted, std::size_t more_bytes) noexcept;

/// Size of the stack of a thread that OpenBLAS starts.
std::size_t thread_stack_bytes() noexcept;

/// Throws Error if this thread, which is about to call BLAS, would get no buffer. Looks at its first call
/// only.
void require_blas_buffer();

/// Throws Error if OpenBLAS could not start so many threads.
void require_blas_threads(int count);

}  // namespace widelimit::numerics
