#include <algorithm>

#include "kernel/run/state_counts.hpp"
#include "widelimit/kernel/explain.hpp"

namespace widelimit {
namespace {

StateRoom room_of(const Plan& plan) { return {plan.state_bytes, plan.state_memory_bytes, plan.tile_side}; }

double triangle(Index inputs) {
  const auto n = static_cast<double>(inputs);
  return n * (n + 1) / 2;
}

double rectangle(Index rows, Index columns) {
  return static_cast<double>(rows) * static_cast<double>(columns);
}

}  // namespace

Cost Plan::cost_of(double states, double pairs) const {
  return {start.seconds + states * input.seconds + pairs * pair.seconds,
          start.processor_seconds + states * input.processor_seconds + pairs * pair.processor_seconds};
}

Cost Plan::of_gram(Index inputs) const {
  return cost_of(states_made(inputs, room_of(*this)), triangle(inputs));
}

Cost Plan::of_gram(Index rows, Index columns) const {
  return cost_of(states_made(rows, columns, room_of(*this)), rectangle(rows, columns));
}

Cost Plan::of_store(Index inputs, Index side) const {
  return cost_of(states_made_in_tiles(inputs, side, room_of(*this)), triangle(inputs));
}

Cost Plan::of_store(Index rows, Index columns, Index side) const {
  return cost_of(states_made_in_tiles(rows, columns, side, room_of(*this)), rectangle(rows, columns));
}

}  // namespace widelimit
