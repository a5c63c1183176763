#include "widelimit/numerics/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <memory>

namespace widelimit::numerics {
namespace {

struct FreeSet {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};

/// How many cores the system lets this process run on; 0 if it does not say.
int cores_allowed() {
  // The system refuses a set with room for fewer cores than it knows, so the room grows until it does.
  constexpr int first = 1024, last = 1 << 20;
  for (int room = first; room <= last; room *= 2) {
    const std::unique_ptr<cpu_set_t, FreeSet> set(CPU_ALLOC(static_cast<std::size_t>(room)));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(room));
    if (set && sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return 0;
}

}  // namespace

int machine_cores() { return std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))); }

int own_cores() {
  // std::thread::hardware_concurrency() counts those of the machine with some versions of the C library.
  const int allowed = cores_allowed();
  return allowed > 0 ? allowed : machine_cores();
}

}  // namespace widelimit::numerics
