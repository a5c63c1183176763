#include "kernel/demand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit {
namespace {

std::vector<Index> full_range(Index left, Index right) {
  std::vector<Index> offsets;
  for (Index offset = -(left - 1); offset < right; ++offset) offsets.push_back(offset);
  return offsets;
}

/// Only poolings and wrap-around leave offsets out of order.
void make_set(std::vector<Index>& offsets) {
  if (!std::is_sorted(offsets.begin(), offsets.end())) std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
}

/// Sizes of a node's input and output on both sides.
struct Sides {
  Index3 left;
  Index3 right;

  Sides(const PairShapes& shapes, NodeId id)
      : left{three_axes(shapes.left[id])}, right{three_axes(shapes.right[id])} {}
};

/// For output offset delta, the offsets stride * delta + shift + e, e in [-reach, reach], and with
/// wrap-around those that differ by a size.
Offsets window_offsets(const Window& plain, const Offsets& wanted, const Sides& input, Index reach_of_window,
                       bool wrapped) {
  const Window3 window(plain);
  const Index3 left_front = window.front(input.left), right_front = window.front(input.right);
  Offsets result;
  for (std::size_t k = 0; k < 3; ++k) {
    const Index shift = left_front[k] - right_front[k];
    const Index reach = reach_of_window * (window.size[k] - 1);
    const Index turns = wrapped ? 1 : 0;
    std::vector<Index>& offsets = result.axis[k];
    for (const Index delta : wanted.axis[k])
      for (Index e = -reach; e <= reach; ++e)
        for (Index left_turn = -turns; left_turn <= turns; ++left_turn)
          for (Index right_turn = -turns; right_turn <= turns; ++right_turn) {
            const Index offset = window.stride[k] * delta + shift + e + left_turn * input.left[k] -
                                 right_turn * input.right[k];
            if (offset > -input.left[k] && offset < input.right[k]) offsets.push_back(offset);
          }
    make_set(offsets);
  }
  for (const auto& offsets : result.axis)
    if (offsets.empty()) return {};
  return result;
}

}  // namespace

Index Offsets::count() const { return static_cast<Index>(axis[0].size() * axis[1].size() * axis[2].size()); }

bool Offsets::is_zero_only() const { return *this == zero(); }

bool Offsets::contains(const Index3& offset) const {
  for (std::size_t k = 0; k < 3; ++k)
    if (!std::binary_search(axis[k].begin(), axis[k].end(), offset[k])) return false;
  return true;
}

Offsets Offsets::zero() { return {{{{0}, {0}, {0}}}}; }

Offsets Offsets::all(const Index3& left, const Index3& right) {
  Offsets result;
  for (std::size_t k = 0; k < 3; ++k) result.axis[k] = full_range(left[k], right[k]);
  return result;
}

void Offsets::unite(const Offsets& other) {
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<Index> both;
    std::set_union(axis[k].begin(), axis[k].end(), other.axis[k].begin(), other.axis[k].end(),
                   std::back_inserter(both));
    axis[k] = std::move(both);
  }
}

Offsets input_offsets(const Node& node, std::size_t input, const Offsets& wanted, const PairShapes& shapes) {
  if (wanted.empty()) return {};
  const Sides sides(shapes, node.inputs[input]);
  const auto full = [&] { return Offsets::all(sides.left, sides.right); };
  if (const auto* affine = std::get_if<AffineNode>(&node.operation))
    return window_offsets(affine->window, wanted, sides, 0, affine->window.padding == Padding::circular);
  if (const auto* local = std::get_if<LocalAffineNode>(&node.operation)) {
    if (!wanted.contains({0, 0, 0})) return {};
    return window_offsets(local->affine.window, Offsets::zero(), sides, 0,
                          local->affine.window.padding == Padding::circular);
  }
  if (const auto* pool = std::get_if<PoolNode>(&node.operation))
    return window_offsets(pool->window, wanted, sides, 1, false);
  if (const auto* readout = std::get_if<ReadoutNode>(&node.operation))
    return readout->kind == ReadoutKind::flatten ? Offsets::zero() : full();
  if (const auto* pair = std::get_if<PairNode>(&node.operation)) {
    const Entries needed = pair->stage->input_entries(wanted.entries());
    return needed == Entries::diagonal ? Offsets::zero() : full();
  }
  return wanted;
}

bool needs_variances(const Operation& operation) {
  return std::holds_alternative<RowNode>(operation) || std::holds_alternative<PairNode>(operation);
}

std::vector<Offsets> demanded_offsets(const Graph& graph, const PairShapes& shapes, Purpose purpose) {
  std::vector<Offsets> demanded(graph.nodes.size());
  if (purpose == Purpose::result) demanded[graph.output] = Offsets::zero();
  for (NodeId id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Offsets& input = demanded[node.inputs[i]];
      input.unite(input_offsets(node, i, demanded[id], shapes));
      if (purpose == Purpose::result || !needs_variances(node.operation)) continue;
      input.unite(Offsets::zero());
      const auto* pair = std::get_if<PairNode>(&node.operation);
      if (pair != nullptr && pair->stage->self_entries() == Entries::all) {
        const Sides sides(shapes, node.inputs[i]);
        input.unite(Offsets::all(sides.left, sides.right));
      }
    }
  }
  return demanded;
}

std::vector<Offsets> every_offset(const Graph& graph, const PairShapes& shapes,
                                  std::vector<Offsets> demanded) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (demanded[id].empty() || shapes.left[id].empty()) continue;
    const Sides sides(shapes, id);
    demanded[id] = Offsets::all(sides.left, sides.right);
  }
  return demanded;
}

}  // namespace widelimit
