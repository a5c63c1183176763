#pragma once
#pragma GCC system_header  // #include_next is an extension.

// Stands in front of oneTBB's header in builds with the thread sanitizer. The library itself is not instrumented, so the
// sanitizer does not see that parallel_for() begins before its bodies and ends after them, and takes what they read
// for a race. Here that order is told to it: nothing more, so that races between two bodies are still found.

#define parallel_for unordered_parallel_for
#include_next <tbb/parallel_for.h>
#undef parallel_for

#include <sanitizer/tsan_interface.h>

#include <utility>

namespace tbb {

/// What happened before the loop happens before every body, and every body before what follows the loop.
class LoopOrder {
 public:
  LoopOrder() { __tsan_release(&begin_); }
  ~LoopOrder() { __tsan_acquire(&end_); }
  LoopOrder(const LoopOrder&) = delete;
  LoopOrder& operator=(const LoopOrder&) = delete;

  /// Around a body.
  class Body {
   public:
    explicit Body(LoopOrder& order) : order_{order} { __tsan_acquire(&order_.begin_); }
    ~Body() { __tsan_release(&order_.end_); }
    Body(const Body&) = delete;
    Body& operator=(const Body&) = delete;

   private:
    LoopOrder& order_;
  };

 private:
  char begin_ = 0, end_ = 0;
};

template <typename Index, typename Function>
void parallel_for(Index first, Index last, const Function& function) {
  LoopOrder order;
  unordered_parallel_for(first, last, [&](Index i) {
    const LoopOrder::Body body(order);
    function(i);
  });
}

template <typename Range, typename Function, typename... Partitioner>
  requires requires(const Range& range) { range.is_divisible(); }
void parallel_for(const Range& range, const Function& function, Partitioner&&... partitioner) {
  LoopOrder order;
  unordered_parallel_for(
      range,
      [&](const Range& part) {
        const LoopOrder::Body body(order);
        function(part);
      },
      std::forward<Partitioner>(partitioner)...);
}

}  // namespace tbb
