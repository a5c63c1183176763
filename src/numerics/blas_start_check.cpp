#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "numerics/blas_memory.hpp"

/// OpenBLAS starts its threads while the program is loaded, before main(), and would hang there (see
/// blas_memory.hpp). This runs before the initialisation of any library and may call the C library only.
namespace {

/// The value of a variable, a number above 0, or 0.
int number_in(char** environment, const char* name) {
  const std::size_t length = std::strlen(name);
  for (; *environment != nullptr; ++environment)
    if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
      return std::max(0, std::atoi(*environment + length + 1));
  return 0;
}

/// The threads that OpenBLAS starts, by its own rules: as many as cores, or fewer.
int blas_threads(char** environment) {
  cpu_set_t cores;
  const int available = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  // OpenBLAS reads its own variable first, then that of its predecessor GotoBLAS, then that of OpenMP.
  for (const char* name : {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"})
    if (const int wanted = number_in(environment, name); wanted > 0) return std::min(wanted, available);
  return available;
}

void check_blas_start(int /*count*/, char** /*arguments*/, char** environment) {
  using namespace widelimit::numerics;
  const int helpers = blas_threads(environment) - 1;
  // Its threads take their buffers while the program goes on, which may be ahead of them with a thread of its own, for
  // signals, and with what it allocates until it checks the limits again.
  constexpr std::size_t first_allocations = std::size_t{16} << 20;
  const int fitting = blas_buffers_that_fit(helpers, thread_stack_bytes(),
                                            malloc_arena_bytes + thread_stack_bytes() + first_allocations);
  if (fitting >= helpers) return;
  // Neither iostreams nor fmt may be used before their libraries are initialised, so the text is made by the C library.
  char text[400];
  const int length =
      std::snprintf(text, sizeof(text),
                    "widelimit: out of address space: OpenBLAS, which is loaded with the program, takes %zu "
                    "MiB for each of "
                    "%d threads, %d fit; raise the limit (ulimit -v) or set OPENBLAS_NUM_THREADS=%d\n",
                    (blas_buffer_bytes + thread_stack_bytes()) >> 20, helpers, fitting, fitting + 1);
  static_cast<void>(!write(STDERR_FILENO, text, static_cast<std::size_t>(length)));
  // exit() would run the destructors of libraries that have not been initialised.
  _exit(EXIT_FAILURE);
}

/// The loader runs the functions in an executable's .preinit_array before the constructors of all shared libraries.
[[gnu::section(".preinit_array"), gnu::used]] void (*const before_libraries)(int, char**,
                                                                             char**) = check_blas_start;

}  // namespace
