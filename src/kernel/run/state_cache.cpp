#include "kernel/run/state_cache.hpp"

#include <algorithm>
#include <memory>
#include <vector>

#include "kernel/backends/device/device_plan.hpp"

namespace widelimit {
namespace {

bool are_same(const StateLayout& a, const StateLayout& b) {
  return a.shape == b.shape && a.offset == b.offset && a.planes == b.planes && a.positions == b.positions &&
         a.arrays == b.arrays && a.extra == b.extra && a.size == b.size;
}

bool are_same(const Node& a, const Node& b) {
  return a.operation.index() == b.operation.index() && a.inputs == b.inputs && a.path == b.path;
}

}  // namespace

/// Both plans belong to one network, whose layers make the same state of an input whatever the other inputs are. Only
/// the largest shape and the options can make a difference: they decide which nodes there are, what is kept as a
/// matrix, and how states are laid out. Comparing these is therefore enough.
bool states_agree(const GramPlan& a, const GramPlan& b) {
  const auto &nodes_a = a.program.graph.nodes, &nodes_b = b.program.graph.nodes;
  const bool same_program = a.in_double == b.in_double && a.masks == b.masks &&
                            a.exact_attention == b.exact_attention &&
                            a.program.as_matrix == b.program.as_matrix &&
                            std::equal(nodes_a.begin(), nodes_a.end(), nodes_b.begin(), nodes_b.end(),
                                       [](const Node& x, const Node& y) { return are_same(x, y); });
  const auto devices_of = [](const GramPlan& plan) {
    return plan.device == nullptr ? std::vector<std::shared_ptr<opencl::Session>>() : plan.device->sessions();
  };
  return same_program && devices_of(a) == devices_of(b) &&
         std::all_of(a.state_layouts.begin(), a.state_layouts.end(), [&](const auto& shape_and_layout) {
           const auto other = b.state_layouts.find(shape_and_layout.first);
           return other == b.state_layouts.end() || are_same(shape_and_layout.second, other->second);
         });
}

}  // namespace widelimit
