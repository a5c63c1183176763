#include "numerics/blas_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/numerics/blas_kernels.hpp"

// OpenBLAS exports its pool, though no header declares it. The declarations are weak, since another build of OpenBLAS
// may hide the functions; then only whether the buffers fit is checked.
extern "C" {
[[gnu::weak]] void* blas_memory_alloc(int position);
[[gnu::weak]] void blas_memory_free(void* buffer);
}

namespace widelimit::numerics {
namespace {

/// Buffers that are counted one by one. The array of their addresses is on the stack, so that
/// counting allocates nothing.
constexpr int most_threads = 1024;

/// OpenBLAS's pool has room for two buffers for every thread that it was built for (Debian: 128).
constexpr int most_reserved = 128;

/// Buffers that the pool has kept for callers.
std::atomic<int> reserved = 0;

/// Throws unless the system would give so many buffers, each with `more_bytes` beside it.
void require_room(int buffers, std::size_t more_bytes) {
  const int fitting = blas_buffers_that_fit(buffers, more_bytes);
  if (fitting >= buffers) return;
  throw Error(fmt::format(
      "out of address space: BLAS and allocations need {} MiB for each of {} threads more, {} fit; "
      "raise the limit (ulimit -v) or use fewer threads",
      (blas_buffer_bytes + more_bytes) >> 20, buffers, fitting));
}

}  // namespace

int blas_buffers_that_fit(int wanted, std::size_t more_bytes, std::size_t other_bytes) noexcept {
  void* buffers[most_threads];
  const std::size_t bytes = blas_buffer_bytes + more_bytes;
  const auto map = [](std::size_t size) {
    return mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  void* const other = other_bytes > 0 ? map(other_bytes) : nullptr;
  if (other == MAP_FAILED) return 0;
  int count = 0;
  // All buffers are mapped before the first one is given back: mapped one after the other, any number would fit.
  for (; count < std::min(wanted, most_threads); ++count) {
    buffers[count] = map(bytes);
    if (buffers[count] == MAP_FAILED) break;
  }
  for (int i = 0; i < count; ++i) munmap(buffers[i], bytes);
  if (other != nullptr) munmap(other, other_bytes);
  return wanted > most_threads && count == most_threads ? wanted : count;
}

std::size_t thread_stack_bytes() noexcept {
  // For an unlimited stack glibc takes 2 MiB on x86-64.
  constexpr std::size_t of_unlimited = std::size_t{2} << 20;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY) return of_unlimited;
  return stack.rlim_cur;
}

int reserved_blas_buffers() noexcept { return reserved.load(std::memory_order_acquire); }

void reserve_blas_buffers(int callers, int others) {
  static std::mutex mutex;
  const int total = std::min(callers + others, most_reserved);
  // Every matrix product calls this function, so the common case costs one atomic read.
  if (reserved.load(std::memory_order_acquire) >= total) return;
  // A static object of another file may compute before the kernels are chosen.
  static_cast<void>(blas_kernels());
  const std::lock_guard lock(mutex);
  // Buffers that others hold now come on top: they are not given to us a second time.
  const int missing = std::min(total - reserved + others, total);
  require_room(missing, malloc_arena_bytes);
  if (blas_memory_alloc != nullptr && blas_memory_free != nullptr) {
    std::vector<void*> buffers(static_cast<std::size_t>(total));
    // All buffers are taken before any is given back, so that the pool grows to `total` different ones, which it keeps.
    for (void*& buffer : buffers) buffer = blas_memory_alloc(0);
    for (void* buffer : buffers) blas_memory_free(buffer);
  }
  reserved.store(std::max<int>(reserved, total), std::memory_order_release);
}

void require_blas_threads(int count) {
  if (count <= 0) return;
  require_room(count, thread_stack_bytes());
}

}  // namespace widelimit::numerics
