#include "kernel/backends/cpu/backward/plan/scalar_slopes.hpp"

#include <algorithm>
#include <cmath>

#include "kernel/backends/cpu/backward/plan/graph_scalars.hpp"
#include "kernel/backends/cpu/backward/plan/hyperparameter_stencil.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit {
namespace {

/// Whether the path `inner` is `outer` or continues it. The next character is compared as well, since "layers[1]"
/// does not contain "layers[10]", nor "weight" "weight_variance".
bool is_inside(const std::string& inner, const std::string& outer) {
  if (!inner.starts_with(outer)) return false;
  return inner.size() == outer.size() || inner[outer.size()] == '.' || inner[outer.size()] == '[';
}

/// The part "layers[2].branches[0].layers[1]" of a path "layers[2].branches[0].layers[1] (relu)".
std::string layer_path(const Node& node) { return node.path.substr(0, node.path.find(' ')); }

/// Whether a number may be hidden inside an operation, because the operation's layer has the number or is inside the
/// layer that has it.
bool may_hold(const Node& node, const std::string& number) {
  if (has_numbers_only(node.operation)) return false;
  const std::string layer = layer_path(node), holder = number.substr(0, number.rfind('.'));
  return is_inside(number, layer) || is_inside(layer, holder);
}

/// Whether two graphs have the same operations, so that their scalars correspond one to one. A number that changes
/// the graph itself has no such slopes.
bool alike(const Graph& one, const Graph& other) {
  return std::equal(one.nodes.begin(), one.nodes.end(), other.nodes.begin(), other.nodes.end(),
                    [](const Node& a, const Node& b) {
                      return a.operation.index() == b.operation.index() && a.inputs == b.inputs &&
                             a.path == b.path;
                    }) &&
         one.output == other.output && graph_scalars(one).size() == graph_scalars(other).size();
}

}  // namespace

std::optional<std::vector<double>> scalar_slopes(const Network& network, const std::string& number,
                                                 const std::function<Graph(const Network&)>& graph_of) {
  const Graph graph = graph_of(network);
  if (std::any_of(graph.nodes.begin(), graph.nodes.end(),
                  [&](const Node& node) { return may_hold(node, number); }))
    return std::nullopt;
  const NetworkNumbers numbers(network, {number});
  const double value = numbers.values().front();
  const auto changed = [&](double shift) { return numbers.with({value + shift}); };
  const auto is_in_range = [&](double shift) {
    try {
      static_cast<void>(changed(shift));
      return true;
    } catch (const NetworkError&) {
      return false;
    }
  };
  // Scalars are powers and sums of numbers. These are nearly polynomials within a small share of the number's own
  // size, where differences of eighth order have no error to speak of.
  const double step = 0x1p-5 * (value != 0 ? std::abs(value) : 1);
  const auto stencil = stencil_in_range(step, is_in_range);
  if (!stencil) return std::nullopt;
  std::vector<double> slopes(graph_scalars(graph).size(), 0.0);
  for (const StencilPlace& place : *stencil) {
    const Graph at = graph_of(changed(place.steps * step));
    if (!alike(graph, at)) return std::nullopt;
    const std::vector<double> scalars = graph_scalars(at), before = graph_scalars(graph);
    // Differences, so that scalars that do not change have slopes of 0.
    for (std::size_t i = 0; i < slopes.size(); ++i)
      slopes[i] += place.weight * (scalars[i] - before[i]) / step;
  }
  return slopes;
}

}  // namespace widelimit
