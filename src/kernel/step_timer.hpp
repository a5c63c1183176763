#pragma once

#include <chrono>
#include <vector>

#include "network/graph.hpp"

namespace widelimit {

/// Adds up the time of each node of a graph. It measures nothing until it is started.
class StepTimer {
 public:
  void start(std::size_t nodes) { seconds_.assign(nodes, 0); }

  /// Calls body().
  template <typename Body>
  void time(NodeId node, const Body& body) {
    using Clock = std::chrono::steady_clock;
    const bool measures = !seconds_.empty();
    const auto start = measures ? Clock::now() : Clock::time_point();
    body();  // in one place only, so that it is inlined
    if (measures) seconds_[node] += std::chrono::duration<double>(Clock::now() - start).count();
  }

  void add_to(std::vector<double>& total) const {
    for (NodeId node = 0; node < seconds_.size(); ++node) total[node] += seconds_[node];
  }

 private:
  std::vector<double> seconds_;  // [node], or empty
};

}  // namespace widelimit
