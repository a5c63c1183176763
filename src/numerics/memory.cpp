#include "widelimit/numerics/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>

#include "numerics/blas_memory.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/control_group_memory.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

/// Address space and memory that this process uses, by proc(5).
struct ProcessBytes {
  double mapped = 0;
  double resident = 0;
};

ProcessBytes process_bytes() {
  std::ifstream stream("/proc/self/statm");
  ProcessBytes pages;
  stream >> pages.mapped >> pages.resident;
  const auto page = static_cast<double>(sysconf(_SC_PAGE_SIZE));
  return {pages.mapped * page, pages.resident * page};
}

double mapped_bytes() { return process_bytes().mapped; }

}  // namespace

double MemoryLimits::least() const {
  return std::min({physical, control_group.value_or(physical), address_space.value_or(physical)});
}

MemoryLimits memory_limits(const std::filesystem::path& root) {
  MemoryLimits limits{
      .physical = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE)),
      .control_group = control_group_memory(root),
      .address_space = {}};
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
    limits.address_space = static_cast<double>(space.rlim_cur);
  return limits;
}

double available_memory() { return memory_limits().least(); }

double resident_memory() { return process_bytes().resident; }

double thread_reserve(int threads) {
  const int wanted = resolve_threads(threads, "threads");
  // Threads that compute for the first time map a buffer of BLAS and an arena of malloc each. Those that BLAS starts
  // for its own products map a buffer and their stack.
  const auto callers = static_cast<double>(std::max(0, threads_at_once(wanted) - reserved_blas_buffers())),
             helpers = static_cast<double>(blas_helpers_to_start(wanted));
  return callers * static_cast<double>(blas_buffer_bytes + malloc_arena_bytes) +
         helpers * static_cast<double>(blas_buffer_bytes + thread_stack_bytes());
}

double room_for_matrices(int threads) {
  const MemoryLimits limits = memory_limits();
  if (!limits.address_space) return limits.least();
  const double left = *limits.address_space - mapped_bytes() - thread_reserve(threads);
  return std::min(limits.least(), std::max(0.0, left));
}

void require_room_for_threads(int threads) {
  const MemoryLimits limits = memory_limits();
  if (!limits.address_space) return;
  const int wanted = resolve_threads(threads, "threads");
  const double mapped = mapped_bytes(), left = *limits.address_space - mapped;
  if (thread_reserve(wanted) <= left) return;
  int fitting = wanted - 1;
  while (fitting > 0 && thread_reserve(fitting) > left) --fitting;
  constexpr double kibibyte = 1024;
  throw ArgumentError(
      fmt::format("out of address space: BLAS and the C library reserve {} for {} {}, of the {} (ulimit -v) "
                  "{} are left; {}raise "
                  "the limit to {:.0f} KiB or more",
                  memory_text(thread_reserve(wanted)), wanted, wanted == 1 ? "thread" : "threads",
                  memory_text(*limits.address_space), memory_text(std::max(left, 0.0)),
                  fitting > 0 ? fmt::format("use {} ({} of reserve), or ",
                                            fitting == 1 ? "1 thread" : fmt::format("{} threads", fitting),
                                            memory_text(thread_reserve(fitting)))
                              : "",
                  std::ceil((mapped + thread_reserve(wanted)) / kibibyte)));
}

std::string memory_text(double bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

void require_memory(std::string_view where, std::string_view what, double bytes, std::string_view advice) {
  // A process with less in all could not have started. Limits are read from files, which takes a tenth of a
  // millisecond: more than the Gram matrix of some inputs of a small network.
  constexpr double always_there = 1 << 20;
  if (bytes <= always_there) return;
  const double available = available_memory();
  if (bytes > available)
    throw ArgumentError(fmt::format("{}: {} takes {} of memory, {} are available; {}", where, what,
                                    memory_text(bytes), memory_text(available), advice));
}

}  // namespace widelimit::numerics
