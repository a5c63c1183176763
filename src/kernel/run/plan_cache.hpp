#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernel/backends/device/device_form.hpp"
#include "kernel/run/make_gram_plan.hpp"

namespace widelimit {

/// All that the plan of a network depends on besides the network.
struct PlanKey {
  std::vector<Shape> shapes;
  GramSize size;
  Kernels kernels;
  GramOptions::Demand demand;
  bool exact_attention;
  Index tile_size;
  int threads;
  std::string device, forced_form;

  PlanKey(const NamedShapes& named, const GramSize& of, const GramOptions& options)
      : size{of},
        kernels{options.kernels},
        demand{options.demand},
        exact_attention{options.exact_attention},
        tile_size{options.tile_size},
        threads{options.threads},
        device{options.device},
        forced_form{widelimit::forced_form()} {
    for (const auto& [shape, name] : named) shapes.push_back(shape);
  }
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// Keeps the plans that were asked for last. Predicting one input after another asks for the same plan again and
/// again, and making it would take as long as the pairs of one input.
class PlanCache {
 public:
  /// The plan of this key. If it is not there, make() makes it, without the lock: two threads may then make equal
  /// plans, which is harmless.
  template <typename Make>
  std::shared_ptr<const GramPlan> get(const PlanKey& key, const Make& make) {
    {
      const std::scoped_lock lock(mutex_);
      const auto found =
          std::find_if(plans_.begin(), plans_.end(), [&](const auto& plan) { return plan.first == key; });
      if (found != plans_.end()) return found->second;
    }
    auto made = make();
    const std::scoped_lock lock(mutex_);
    constexpr std::size_t most = 4;  // kernels of new inputs and of kept ones, in two batch sizes
    if (plans_.size() >= most) plans_.pop_front();
    plans_.emplace_back(key, made);
    return made;
  }

 private:
  std::mutex mutex_;
  std::deque<std::pair<PlanKey, std::shared_ptr<const GramPlan>>> plans_;
};

}  // namespace widelimit
