#include "gp/data_side/input_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

using Sizes = std::vector<std::size_t>;

Sizes sizes_of(Index count, const Shape& shape) {
  Sizes sizes{static_cast<std::size_t>(count)};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  return sizes;
}

// --- Numbers and shapes.

template <typename Scalar>
void write_numbers(ArrayFolderWriter& folder, const Inputs<Scalar>& x) {
  std::vector<Scalar> numbers;
  for (Index i = 0; i < x.size(); ++i) numbers.insert(numbers.end(), x[i].begin(), x[i].end());
  // A ragged batch is a list of numbers with the shape of each input beside it.
  if (!x.is_ragged()) {
    Sizes sizes = sizes_of(x.size(), x.shape());
    sizes.push_back(static_cast<std::size_t>(x.channels()));
    return folder.write("x.npy", numbers.data(), sizes);
  }
  std::vector<std::int64_t> shapes;
  for (Index i = 0; i < x.size(); ++i) shapes.insert(shapes.end(), x.shape(i).begin(), x.shape(i).end());
  folder.write("x.npy", numbers.data(), {numbers.size()});
  folder.write("shapes.npy", shapes.data(), {static_cast<std::size_t>(x.size()), x.axes()});
}

template <typename Scalar>
Inputs<Scalar> read_ragged_numbers(const ArrayFolderReader& folder, Index channels) {
  const auto numbers = folder.array<Scalar>("x.npy");
  const auto shapes = folder.array<std::int64_t>("shapes.npy");
  const JsonValue described = folder.document().at("inputs");
  if (shapes.dimension() != 2 || channels < 1) described.fail("does not fit shapes.npy");
  std::vector<xt::xarray<Scalar>> inputs;
  std::size_t next = 0;
  for (std::size_t i = 0; i < shapes.shape(0); ++i) {
    Sizes sizes;
    for (std::size_t k = 0; k < shapes.shape(1); ++k) sizes.push_back(static_cast<std::size_t>(shapes(i, k)));
    sizes.push_back(static_cast<std::size_t>(channels));
    // The product of the sizes may overflow, so the count is held against the numbers that are left at every step.
    std::size_t count = 1;
    for (const std::size_t size : sizes) {
      if (size == 0 || count > (numbers.size() - next) / size)
        described.fail("x.npy holds fewer numbers than shapes.npy says");
      count *= size;
    }
    xt::xarray<Scalar> input = xt::xarray<Scalar>::from_shape(sizes);
    std::copy_n(numbers.begin() + static_cast<std::ptrdiff_t>(next), count, input.begin());
    next += count;
    inputs.push_back(std::move(input));
  }
  if (next != numbers.size()) described.fail("x.npy holds more numbers than shapes.npy says");
  return Inputs<Scalar>(std::move(inputs));
}

// --- Masks.

template <typename Scalar>
void write_mask(ArrayFolderWriter& folder, const Inputs<Scalar>& x) {
  std::vector<std::uint8_t> counts;
  for (Index i = 0; i < x.size(); ++i) counts.insert(counts.end(), x.mask(i).begin(), x.mask(i).end());
  folder.write("mask.npy", counts.data(),
               x.is_ragged() ? Sizes{counts.size()} : sizes_of(x.size(), x.shape()));
}

template <typename Scalar>
Inputs<Scalar> with_ragged_mask(const ArrayFolderReader& folder, const Inputs<Scalar>& x) {
  const auto counts = folder.array<std::uint8_t>("mask.npy");
  const JsonValue described = folder.document().at("inputs");
  std::vector<xt::xarray<bool>> masks;
  std::size_t next = 0;
  for (Index i = 0; i < x.size(); ++i) {
    xt::xarray<bool> mask = xt::xarray<bool>::from_shape(Sizes(x.shape(i).begin(), x.shape(i).end()));
    if (mask.size() > counts.size() - next)
      described.fail("mask.npy holds fewer values than x.npy has positions");
    for (bool& value : mask) value = counts.data()[next++] != 0;
    masks.push_back(std::move(mask));
  }
  if (next != counts.size()) described.fail("mask.npy holds more values than x.npy has positions");
  return Inputs<Scalar>(x, masks);
}

template <typename Scalar>
Inputs<Scalar> with_mask(const ArrayFolderReader& folder, const Inputs<Scalar>& x) {
  // Masks of ragged batches lie one after another, in the order and with the sizes of the inputs.
  if (x.is_ragged()) return with_ragged_mask(folder, x);
  return Inputs<Scalar>(x, xt::xarray<bool>(xt::cast<bool>(folder.array<std::uint8_t>("mask.npy"))));
}

// --- Graphs.

template <typename Scalar>
void write_input_graphs(ArrayFolderWriter& folder, const Inputs<Scalar>& x) {
  std::vector<std::int64_t> edges, sizes;
  std::vector<double> weights;
  for (const InputGraph& graph : x.graphs()) {
    // Edges of all graphs lie one after another, in a batch with as many as `sizes` says for each graph.
    sizes.push_back(graph.edges());
    for (Index target = 0; target < graph.nodes(); ++target)
      for (const auto& [source, weight] : graph.incoming(target)) {
        edges.insert(edges.end(), {source, target});
        weights.push_back(weight);
      }
  }
  folder.write("graph_edges.npy", edges.data(), {weights.size(), 2});
  folder.write("graph_weights.npy", weights.data(), {weights.size()});
  folder.write("graph_sizes.npy", sizes.data(), {sizes.size()});
}

template <typename Scalar>
Inputs<Scalar> with_graphs(const ArrayFolderReader& folder, const Inputs<Scalar>& x) {
  const auto edges = folder.array<std::int64_t>("graph_edges.npy"),
             sizes = folder.array<std::int64_t>("graph_sizes.npy");
  const auto weights = folder.array<double>("graph_weights.npy");
  const JsonValue described = folder.document().at("inputs");
  const bool fit = edges.dimension() == 2 && edges.shape(1) == 2 && weights.dimension() == 1 &&
                   weights.size() == edges.shape(0) && sizes.dimension() == 1 &&
                   static_cast<Index>(sizes.size()) == x.size();
  if (!fit) described.fail("the arrays of graphs do not fit each other");
  std::vector<InputGraph> graphs;
  std::size_t next = 0;
  for (Index i = 0; i < x.size(); ++i) {
    const auto size = static_cast<std::size_t>(sizes(static_cast<std::size_t>(i)));
    if (size > weights.size() - next)
      described.fail("graph_edges.npy holds fewer edges than graph_sizes.npy says");
    std::vector<GraphEdge> of_graph;
    for (const std::size_t end = next + size; next < end; ++next)
      of_graph.push_back({edges(next, 0), edges(next, 1), weights(next)});
    graphs.emplace_back(x.shape(i).empty() ? Index{0} : x.shape(i)[0], of_graph);
  }
  return {x, std::move(graphs)};
}

}  // namespace

template <typename Scalar>
void write_inputs(ArrayFolderWriter& folder, nlohmann::ordered_json& document, const Inputs<Scalar>& x) {
  document["inputs"] = {{"count", x.size()},
                        {"channels", x.channels()},
                        {"ragged", x.is_ragged()},
                        {"masked", x.is_masked()},
                        {"graphs", !x.graphs().empty()}};
  write_numbers(folder, x);
  if (x.is_masked()) write_mask(folder, x);
  if (!x.graphs().empty()) write_input_graphs(folder, x);
}

template <typename Scalar>
Inputs<Scalar> read_inputs(const ArrayFolderReader& folder) {
  const JsonValue described = folder.document().at("inputs");
  const Index channels = described.at("channels");
  Inputs<Scalar> x = described.at("ragged").get<bool>() ? read_ragged_numbers<Scalar>(folder, channels)
                                                        : Inputs<Scalar>(folder.array<Scalar>("x.npy"));
  if (x.size() != described.at("count").get<Index>() || x.channels() != channels)
    described.fail(fmt::format("expected {} inputs of {} channels, x.npy holds {} of {}",
                               described.at("count").get<Index>(), channels, x.size(), x.channels()));
  // A batch has a mask or graphs, never both (Inputs).
  if (described.at("masked").get<bool>()) return with_mask(folder, x);
  if (described.at("graphs").get<bool>()) return with_graphs(folder, x);
  return x;
}

template void write_inputs(ArrayFolderWriter&, nlohmann::ordered_json&, const Inputs<float>&);
template void write_inputs(ArrayFolderWriter&, nlohmann::ordered_json&, const Inputs<double>&);
template Inputs<float> read_inputs(const ArrayFolderReader&);
template Inputs<double> read_inputs(const ArrayFolderReader&);

}  // namespace widelimit::gp
