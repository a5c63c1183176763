#include "widelimit/numerics/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "numerics/blas_memory.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/control_group_memory.hpp"
#include "widelimit/error.hpp"

namespace widelimit::numerics {
namespace {

/// Address space that this process uses, by proc(5).
double mapped_bytes() {
  std::ifstream stream("/proc/self/statm");
  double pages = 0;
  stream >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGE_SIZE));
}

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

double room_for_matrices(int threads) {
  const MemoryLimits limits = memory_limits();
  if (!limits.address_space) return limits.least();
  // Threads that have yet to start will map a buffer of BLAS and an arena of malloc each.
  const auto reserved = static_cast<double>(blas_buffer_bytes + malloc_arena_bytes) *
                        resolve_threads(threads, "room_for_matrices");
  return std::min(limits.least(), std::max(0.0, *limits.address_space - mapped_bytes() - reserved));
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
