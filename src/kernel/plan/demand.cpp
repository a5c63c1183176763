#include "kernel/plan/demand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernel/plan/axis_mapping.hpp"
#include "kernel/plan/primitives.hpp"
#include "network/plane_mapping.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

std::vector<Index> full_range(Index left, Index right) {
  std::vector<Index> offsets;
  for (Index offset = -(left - 1); offset < right; ++offset) offsets.push_back(offset);
  return offsets;
}

/// Sorts offsets and removes repetitions. Most come in order; only poolings and circular windows leave them out of
/// order.
void make_set(std::vector<Index>& offsets) {
  if (!std::is_sorted(offsets.begin(), offsets.end())) std::sort(offsets.begin(), offsets.end());
  offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
}

/// The three sizes of a node on both sides of a pair.
struct Sides {
  Index3 left;
  Index3 right;

  Sides(const PairShapes& shapes, NodeId id)
      : left{three_axes(shapes.left[id])}, right{three_axes(shapes.right[id])} {}
};

/// How often windows go around an axis: their positions p lie at p - turn * size, for turns from first to
/// last.
struct Turns {
  Index first = 0;
  Index last = 0;
};

/// A wide filter on a short axis goes around it several times.
Turns turns_around(const Window3& window, const Index3& sizes, std::size_t axis) {
  const Index front = window.front(sizes)[axis], size = sizes[axis];
  const Index last = (window.output(sizes)[axis] - 1) * window.stride[axis] + window.size[axis] - 1 - front;
  return {-((front + size - 1) / size), last / size};
}

/// The offsets before windows, for offsets delta after them: stride * delta + shift + e, where e is in [-reach,
/// reach], and for circular windows also those that differ by multiples of the sizes. A convolution multiplies equal
/// taps of both windows, so its reach is 0. A pooling adds up all pairs of taps, so its reach is the window's size -
/// 1. The shift is the difference of the paddings before two inputs of different size.
Offsets window_offsets(const Window& plain, const Offsets& wanted, const Sides& input,
                       Index reach_of_window) {
  const Window3 window(plain);
  const Index3 left_front = window.front(input.left), right_front = window.front(input.right);
  const bool wraps = window.padding == Padding::circular;
  Offsets result;
  for (std::size_t k = 0; k < 3; ++k) {
    const Index shift = left_front[k] - right_front[k];
    const Index reach = reach_of_window * (window.size[k] - 1);
    const Turns left = wraps ? turns_around(window, input.left, k) : Turns{};
    const Turns right = wraps ? turns_around(window, input.right, k) : Turns{};
    std::vector<Index>& offsets = result.axis[k];
    for (const Index delta : wanted.axis[k])
      for (Index e = -reach; e <= reach; ++e)
        for (Index left_turn = left.first; left_turn <= left.last; ++left_turn)
          for (Index right_turn = right.first; right_turn <= right.last; ++right_turn) {
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

/// The offsets before a map of positions, which the offsets after it need.
Offsets mapped_offsets(const PlaneMapping& mapping, const Offsets& wanted, const Shape& left,
                       const Shape& right) {
  const auto left_axes = mapping.sparse_axes(left), right_axes = mapping.sparse_axes(right);
  Offsets result;
  for (std::size_t k = 0; k < 3; ++k) {
    result.axis[k] = AxisMapping(left_axes[k], right_axes[k]).offsets_in_front(wanted.axis[k]);
    if (result.axis[k].empty()) return {};
  }
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

double Offsets::count_all(const Index3& left, const Index3& right) {
  double count = 1;
  for (std::size_t k = 0; k < 3; ++k)
    count *= static_cast<double>(left[k]) + static_cast<double>(right[k]) - 1;
  return count;
}

Offsets Offsets::all(const Index3& left, const Index3& right) {
  // Numbers are compared as doubles, because the product of sizes may overflow an index.
  const double count = count_all(left, right);
  double longest = 1;
  for (std::size_t k = 0; k < 3; ++k)
    longest = std::max(longest, static_cast<double>(left[k]) + static_cast<double>(right[k]) - 1);
  if (count > most_offsets || longest > most_offsets_of_axis)
    throw TooManyOffsets(fmt::format(
        "expected at most {:.0f} offsets between the positions of two inputs, and {:.0f} along an "
        "axis, got {:.6g} and {:.6g}; take smaller inputs, or pool or stride earlier",
        most_offsets, most_offsets_of_axis, count, longest));
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

InputDemand::InputDemand(const Graph& graph, NodeId id, std::size_t input, const Offsets& wanted,
                         const PairShapes& shapes)
    : wanted_{wanted}, shapes_{shapes}, id_{id}, input_{graph.nodes[id].inputs[input]} {}

Entries InputDemand::wanted_entries() const {
  const Sides sides(shapes_, id_);
  return wanted_.entries(sides.left, sides.right);
}

Offsets InputDemand::all() const {
  const Sides sides(shapes_, input_);
  return Offsets::all(sides.left, sides.right);
}

Offsets InputDemand::diagonal() const {
  const Sides sides(shapes_, input_);
  return numbers_agree(sides.left, sides.right) ? Offsets::zero() : all();
}

Offsets InputDemand::through(const Window& window, const Offsets& wanted) const {
  return window_offsets(window, wanted, Sides(shapes_, input_), 0);
}

Offsets InputDemand::pooled(const Window& window) const {
  return window_offsets(window, wanted_, Sides(shapes_, input_), 1);
}

Offsets InputDemand::mapped(const PlaneMapping& mapping) const {
  return mapped_offsets(mapping, wanted_, shapes_.left[input_], shapes_.right[input_]);
}

Offsets input_offsets(const Graph& graph, NodeId id, std::size_t input, const Offsets& wanted,
                      const PairShapes& shapes) {
  if (wanted.empty()) return {};
  return offsets_before(graph.nodes[id].operation, InputDemand(graph, id, input, wanted, shapes));
}

namespace {

/// Adds what node `id` needs of its inputs. For states, stages need the variances before them, and pair stages such
/// as attention all of an input's covariance with itself, whether or not anything after them is demanded.
void demand_inputs(const Graph& graph, NodeId id, const PairShapes& shapes, Purpose purpose,
                   std::vector<Offsets>& demanded) {
  const Node& node = graph.nodes[id];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Offsets& input = demanded[node.inputs[i]];
    input.unite(input_offsets(graph, id, i, demanded[id], shapes));
    if (purpose == Purpose::result || !needs_variances(node.operation)) continue;
    input.unite(Offsets::zero());
    const PairStage* pair = pair_stage_of(node.operation);
    if (pair != nullptr && pair->self_entries() == Entries::all) {
      const Sides sides(shapes, node.inputs[i]);
      input.unite(Offsets::all(sides.left, sides.right));
    }
  }
}

}  // namespace

std::vector<Offsets> demanded_offsets(const Graph& graph, const PairShapes& shapes, Purpose purpose) {
  std::vector<Offsets> demanded(graph.nodes.size());
  if (purpose == Purpose::result) demanded[graph.output] = Offsets::zero();
  // Nodes come after their inputs, so that in reverse a node's own demand is complete before it is passed on.
  for (NodeId id = graph.nodes.size(); id-- > 0;) {
    try {
      demand_inputs(graph, id, shapes, purpose, demanded);
    } catch (const TooManyOffsets& error) {
      throw TooManyOffsets(fmt::format("{}: {}", graph.nodes[id].path, error.what()));
    }
  }
  return demanded;
}

std::vector<Offsets> every_offset(const Graph& graph, const PairShapes& shapes,
                                  std::vector<Offsets> demanded) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    // Nodes that nothing reads, and those after the positions, stay as they are.
    if (demanded[id].empty() || shapes.left[id].empty()) continue;
    const Sides sides(shapes, id);
    demanded[id] = Offsets::all(sides.left, sides.right);
  }
  return demanded;
}

}  // namespace widelimit
