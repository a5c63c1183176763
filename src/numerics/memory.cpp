#include "numerics/memory.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>

#include <algorithm>
#include <array>

#include "widelimit/error.hpp"

namespace widelimit::numerics {

double available_memory() {
  struct sysinfo machine {};
  sysinfo(&machine);
  const double all = (static_cast<double>(machine.totalram) + static_cast<double>(machine.totalswap)) *
                     static_cast<double>(machine.mem_unit);
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return all;
  return std::min(all, static_cast<double>(limit.rlim_cur));
}

std::string memory_text(double bytes) {
  static constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.3g} {}", bytes, units[unit]);
}

void require_memory(std::string_view where, std::string_view what, double bytes, std::string_view advice) {
  const double available = available_memory();
  if (bytes > available)
    throw ArgumentError(fmt::format("{}: {} takes {} of memory, {} are available; {}", where, what,
                                    memory_text(bytes), memory_text(available), advice));
}

}  // namespace widelimit::numerics
