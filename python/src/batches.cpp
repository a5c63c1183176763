#include "batches.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "widelimit/error.hpp"
#include "widelimit/network/input_graph.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

xt::xarray<bool> mask_of(const Array<bool>& array) {
  const auto dimensions = dimensions_of(array);
  xt::xarray<bool> mask(std::vector<std::size_t>(dimensions.begin(), dimensions.end()));
  std::copy(array.data(), array.data() + array.size(), mask.begin());
  return mask;
}

std::vector<xt::xarray<bool>> mask_of(const std::vector<Array<bool>>& arrays) {
  std::vector<xt::xarray<bool>> masks;
  for (const Array<bool>& array : arrays) masks.push_back(mask_of(array));
  return masks;
}

/// Of a batch, or one an input.
using MaskArrays = std::variant<Array<bool>, std::vector<Array<bool>>>;

template <typename Scalar>
void make_batch(Batch<Scalar>* self, std::variant<Array<Scalar>, std::vector<Array<Scalar>>> arrays,
                const std::optional<std::vector<Index>>& lengths, const std::optional<MaskArrays>& mask,
                std::optional<std::vector<InputGraph>> graphs) {
  Inputs<Scalar> inputs = std::visit([](const auto& given) { return inputs_of<Scalar>(given); }, arrays);
  if (lengths) inputs = Inputs<Scalar>(inputs, *lengths);
  if (mask)
    inputs = std::visit([&](const auto& given) { return Inputs<Scalar>(inputs, mask_of(given)); }, *mask);
  if (graphs) inputs = Inputs<Scalar>(inputs, std::move(*graphs));
  new (self) Batch<Scalar>{std::move(arrays), std::move(inputs)};
}

template <typename Scalar>
void bind_batch(nb::module_& module, const char* name) {
  nb::class_<Batch<Scalar>>(module, name)
      .def("__init__", &make_batch<Scalar>, "arrays"_a.noconvert(), "lengths"_a.none(), "mask"_a.none(),
           "graphs"_a.none());
}

InputGraph graph_of(Index nodes, const ArrayLikeObject& given_edges,
                    const std::optional<ArrayLikeObject>& given_weights) {
  const Array<std::int64_t> edges = integers_of(given_edges, "Graph: edges");
  std::optional<Vector<double>> weights;
  if (given_weights) weights = vector_of(*given_weights, "Graph: weights");
  if (edges.ndim() != 2 || edges.shape(1) != 2)
    throw ArgumentError("Graph: edges: expected an array [edges, 2] of sources and targets");
  const std::size_t count = edges.shape(0);
  if (weights && static_cast<std::size_t>(weights->size()) != count)
    throw ArgumentError("Graph: weights: expected " + std::to_string(count) +
                        " numbers, one for each edge, got " + std::to_string(weights->size()));
  std::vector<GraphEdge> list;
  for (std::size_t k = 0; k < count; ++k)
    list.push_back({edges.data()[2 * k], edges.data()[2 * k + 1], weights ? weights->data()[k] : 1.0});
  return InputGraph(nodes, list);
}

void bind_graph(nb::module_& module) {
  nb::class_<InputGraph>(
      module, "Graph",
      "The graph that an input carries: its positions are the nodes. Edges are directed and lead from "
      "sources to targets; between nodes of an undirected graph there is one in each direction.\n\n"
      "nodes: their number, at least 1; edges: [edges, 2] of integers, (source, target) in 0 .. nodes - 1; "
      "weights: [edges], finite, 1 where None. ArgumentError names what does not fit.")
      .def(
          "__init__",
          [](InputGraph* self, Index nodes, const ArrayLikeObject& edges,
             const std::optional<ArrayLikeObject>& weights) {
            new (self) InputGraph(graph_of(nodes, edges, weights));
          },
          "nodes"_a, "edges"_a, "weights"_a = nb::none())
      .def_static(
          "from_adjacency",
          [](const ArrayLikeObject& adjacency) {
            return InputGraph::from_adjacency(matrix_of(adjacency, "Graph: adjacency"));
          },
          "adjacency"_a,
          "From a matrix [nodes, nodes]: the edges are the entries [source, target] that are not 0, which "
          "become their weights. ArgumentError unless it is square and finite.")
      .def_prop_ro("nodes", &InputGraph::nodes, "Their number.")
      .def_prop_ro("edges", &InputGraph::edges, "Their number.");
}

}  // namespace

void bind_batches(nb::module_& module) {
  bind_graph(module);
  bind_batch<float>(module, "FloatInputs");
  bind_batch<double>(module, "DoubleInputs");
}

}  // namespace widelimit::python
