#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "kernel/run/gram_computation.hpp"

namespace widelimit {

/// Whether the states of inputs are the same under both plans, for all shapes that both know.
[[nodiscard]] bool states_agree(const GramPlan& a, const GramPlan& b);

/// States of one batch, for each replicate under at most two plans: the first one that was asked for, and the latest
/// other one.
template <typename Scalar, typename Result>
class StateCache {
 public:
  using States = std::shared_ptr<const KeptStates<Scalar, Result>>;

  /// The states under this plan. If they are not there, make() makes them under the lock: threads that wait for it
  /// want the same states.
  template <typename Make>
  States get(const GramPlan& plan, std::int64_t replicate, const Make& make) {
    const std::scoped_lock lock(mutex_);
    auto& [first, last] = states_[replicate];
    for (const States& states : {first, last})
      if (states != nullptr && states_agree(*states->plan, plan)) return states;
    States& place = first == nullptr ? first : last;
    place.reset();  // its memory, before that of the new ones is taken
    return place = make();
  }

 private:
  std::mutex mutex_;
  std::map<std::int64_t, std::array<States, 2>> states_;
};

}  // namespace widelimit
