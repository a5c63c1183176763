#include "numerics/large_pages.hpp"

#include <sys/mman.h>

#include <cstdint>

namespace widelimit::numerics {

void advise_large_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) noexcept {
#ifdef MADV_HUGEPAGE
  if (!serves_large_pages(bytes)) return;
  constexpr std::uintptr_t large = large_page;
  // Whole large pages only, which belong to nobody else.
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + large - 1) / large * large, end = (address + bytes) / large * large;
  // Where it fails, for want of such pages in the system, small ones serve.
  static_cast<void>(madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE));
#endif
}

}  // namespace widelimit::numerics
