#include "numerics/blas_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

constexpr int most_threads = 1024;

[[noreturn]] void fail(int buffers, int fitting) {
  throw Error(
      fmt::format("out of address space: BLAS needs a buffer of {} MiB for each of {} threads more, {} fit; "
                  "raise the limit (ulimit -v) or use fewer threads",
                  blas_buffer_bytes >> 20, buffers, fitting));
}

}  // namespace

int blas_buffers_that_fit(int wanted, std::size_t more_bytes) noexcept {
  void* buffers[most_threads];
  const std::size_t bytes = blas_buffer_bytes + more_bytes;
  int count = 0;
  for (; count < std::min(wanted, most_threads); ++count) {
    buffers[count] = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buffers[count] == MAP_FAILED) break;
  }
  for (int i = 0; i < count; ++i) munmap(buffers[i], bytes);
  return wanted > most_threads && count == most_threads ? wanted : count;
}

std::size_t thread_stack_bytes() noexcept {
  constexpr std::size_t of_unlimited = std::size_t{2} << 20;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY) return of_unlimited;
  return stack.rlim_cur;
}

void require_blas_buffer() {
  thread_local bool is_known = false;
  if (is_known) return;
  if (blas_buffers_that_fit(1, 0) < 1) fail(1, 0);
  is_known = true;
}

void require_blas_threads(int count) {
  if (count <= 0) return;
  const int fitting = blas_buffers_that_fit(count, thread_stack_bytes());
  if (fitting < count) fail(count, fitting);
}

}  // namespace widelimit::numerics
