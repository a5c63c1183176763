#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "kernel/run/gram_computation.hpp"
#include "widelimit/kernel/gram_tiles.hpp"

namespace widelimit {

/// Inputs [begin, end) of a batch with their states, and what these refer to. Members are in the order in which each
/// refers to the previous ones.
template <typename Scalar, typename Result>
struct SliceStates {
  InputRange range;
  Inputs<Result> slice;
  OrderedInputs<Result> inputs;
  Block<Scalar, Result> block;

  SliceStates(InputRange part, const Inputs<Result>& batch, const GramPlan& plan, const char* name,
              GramComputation<Scalar, Result>& computation)
      : range{part},
        slice{batch.slice(part.begin, part.end)},
        inputs(slice, plan, name, part.begin),
        block{computation.make_states(inputs, 0, part.size())} {}
  SliceStates(const SliceStates&) = delete;
  SliceStates& operator=(const SliceStates&) = delete;
};

/// Keeps the states of slices of one batch: as many as the memory allows, the ones that were used last.
template <typename Scalar, typename Result>
class SliceStateCache {
 public:
  using States = std::shared_ptr<const SliceStates<Scalar, Result>>;

  /// The batch and the plan must outlive the cache. Errors call the batch `name`.
  SliceStateCache(const Inputs<Result>& batch, const char* name, const GramPlan& plan, std::size_t bytes)
      : batch_{batch}, name_{name}, plan_{plan}, bytes_{bytes} {}

  /// Cuts a range into slices that begin at multiples of `grid`. A slice takes at most a quarter of the memory unless
  /// one step of the grid takes more, so that several fit at a time.
  [[nodiscard]] std::vector<InputRange> cut(InputRange range, Index grid) const {
    std::vector<InputRange> slices;
    for (Index begin = range.begin; begin < range.end;) {
      std::size_t bytes = bytes_of(begin);
      Index end = begin + 1;
      while (end < range.end && bytes + bytes_of(end) <= bytes_ / 4) bytes += bytes_of(end++);
      if (end < range.end) end = std::min(range.end, std::max(end - end % grid, begin + grid));
      slices.push_back({begin, end});
      begin = end;
    }
    return slices;
  }

  [[nodiscard]] States get(InputRange range, GramComputation<Scalar, Result>& computation) {
    const auto found = std::find_if(kept_.begin(), kept_.end(),
                                    [&](const States& states) { return states->range == range; });
    if (found != kept_.end()) {
      kept_.splice(kept_.begin(), kept_, found);
      return kept_.front();
    }
    make_room(bytes_of(range));
    kept_.push_front(
        std::make_shared<const SliceStates<Scalar, Result>>(range, batch_, plan_, name_, computation));
    return kept_.front();
  }

 private:
  [[nodiscard]] std::size_t bytes_of(Index i) const {
    return static_cast<std::size_t>(plan_.state_layouts.at(batch_.shape(i)).size) * sizeof(Scalar);
  }
  [[nodiscard]] std::size_t bytes_of(InputRange range) const {
    std::size_t bytes = 0;
    for (Index i = range.begin; i < range.end; ++i) bytes += bytes_of(i);
    return bytes;
  }
  void make_room(std::size_t bytes) {
    for (const States& states : kept_) bytes += bytes_of(states->range);
    for (auto last = kept_.end(); bytes > bytes_ && last != kept_.begin();) {
      --last;
      // A slice that a computation is using holds its memory anyway.
      if (last->use_count() > 1) continue;
      bytes -= bytes_of((*last)->range);
      last = kept_.erase(last);
    }
  }

  const Inputs<Result>& batch_;
  const char* name_;
  const GramPlan& plan_;
  std::size_t bytes_;
  std::list<States> kept_;  ///< The most recently used comes first.
};

}  // namespace widelimit
