#pragma once

#include <cstddef>

/// OpenBLAS takes a buffer for every thread that it starts, and for every thread that calls it; where the
/// system has no address space left for one (ulimit -v), it asks for it again for ever. So we ask first.
namespace widelimit::numerics {

/// Size of a buffer, as Debian builds OpenBLAS for x86-64.
inline constexpr std::size_t blas_buffer_bytes = std::size_t{128} << 20;

/// Address space that the C library reserves for the allocations of a thread (twice its HEAP_MAX_SIZE).
inline constexpr std::size_t malloc_arena_bytes = std::size_t{128} << 20;

/// How many of so many buffers, each with `more_bytes` beside it, the system would give where `other_bytes` are taken
/// before. Allocates nothing else and calls the system only: it may run before any library is initialised.
int blas_buffers_that_fit(int wanted, std::size_t more_bytes, std::size_t other_bytes = 0) noexcept;

/// Size of the stack of a thread that OpenBLAS starts.
std::size_t thread_stack_bytes() noexcept;

/// Makes OpenBLAS take the buffers with which `callers` threads more can call it at once, while up to `others`
/// do already; it keeps them, so that later calls cost nothing. Throws Error if they do not fit.
///
/// To be called before those threads start: asking whether a buffer fits and taking it are two steps, and a
/// thread's first allocation, for which the C library reserves as much again, can come between them.
void reserve_blas_buffers(int callers, int others);

/// How many threads can call OpenBLAS at once without that more address space is needed.
int reserved_blas_buffers() noexcept;

/// Throws Error if OpenBLAS could not start so many threads.
void require_blas_threads(int count);

}  // namespace widelimit::numerics
