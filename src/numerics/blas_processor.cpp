#include <cblas.h>
#include <link.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>

#include "numerics/blas_choice.hpp"

namespace widelimit::numerics {
namespace {

/// Which of the loaded objects, in the order of their loading, has an address.
struct ObjectSearch {
  std::uintptr_t address;
  int passed = 0;
  std::optional<int> found = {};
};

int visit_object(dl_phdr_info* object, std::size_t /*size*/, void* data) {
  auto& search = *static_cast<ObjectSearch*>(data);
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    const std::uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD && search.address >= begin && search.address < begin + segment.p_memsz)
      search.found = search.passed;
  }
  ++search.passed;
  return search.found ? 1 : 0;
}

template <typename Function>
int place_of(Function* function) {
  ObjectSearch search{reinterpret_cast<std::uintptr_t>(function)};
  dl_iterate_phdr(visit_object, &search);
  return search.found.value_or(0);
}

std::ptrdiff_t threads_of_process() {
  std::error_code failed;
  return std::distance(std::filesystem::directory_iterator("/proc/self/task", failed), {});
}

}  // namespace

std::string kernels_for_processor() {
#if defined(__x86_64__)
  // These functions also ask whether the system keeps such registers.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
  if (__builtin_cpu_supports("avx")) return "Sandybridge";
#endif
  return "";
}

bool others_may_use_blas() {
  // An OpenBLAS that was loaded for this library has had no caller. Programs are loaded before their libraries.
  if (place_of(openblas_get_num_threads) >= place_of(others_may_use_blas)) return false;
  return threads_of_process() > openblas_get_num_threads();
}

}  // namespace widelimit::numerics
