#pragma once

#include <malloc.h>

#include <limits>

#include "processor_time.hpp"

namespace benchmarks {

/// Has free() keep all memory, in one piece and with its pages, while it lives. Before and after, large blocks come
/// from the system anew each time, and their pages are touched first by whoever writes them.
class KeptPages {
 public:
  KeptPages() {
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  }
  ~KeptPages() {
    constexpr int default_mappings = 65536, default_bytes = 128 << 10;
    mallopt(M_MMAP_MAX, default_mappings);
    mallopt(M_TRIM_THRESHOLD, default_bytes);
    malloc_trim(0);
  }
  KeptPages(const KeptPages&) = delete;
  KeptPages& operator=(const KeptPages&) = delete;
};

/// Processor time of work() on memory that the system has just handed out.
template <typename Work>
double seconds_on_first_use(const Work& work) {
  malloc_trim(0);
  return processor_seconds(work);
}

/// Processor time of work() on memory whose pages work() has touched before.
template <typename Work>
double seconds_on_touched_pages(const Work& work) {
  const KeptPages kept;
  work();
  return processor_seconds(work);
}

}  // namespace benchmarks
