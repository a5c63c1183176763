#pragma once

#include <string>
#include <vector>

#include "widelimit/kernel/inputs.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"

namespace widelimit::testing {

/// A layer of the library with a form of input that suits it.
struct ZooLayer {
  std::string name;
  Layer layer;
  Shape shape;
};

/// Every kind of layer but attention.
std::vector<ZooLayer> zoo_layers();

/// Attention: both scalings with softmax, identity, ReLU and abs weights; masks, encodings of every sort in
/// queries and keys and in values too, untied weights. `samples` is what sampled limits draw.
std::vector<ZooLayer> zoo_attention(Index samples = 40'000);

/// Graphs for the layer's nodes, equal numbers giving equal ones: directed, unless it needs undirected ones.
std::vector<InputGraph> zoo_graphs(const ZooLayer& subject, Index first, Index count);

/// Inputs for the layer, which refer to x: with graphs, numbered from `first`, if it needs some.
template <typename Scalar>
Inputs<Scalar> zoo_inputs(const ZooLayer& subject, const xt::xarray<Scalar>& x, Index first = 0) {
  const Inputs<Scalar> inputs = x;
  if (subject.layer.kind() != "aggregate") return inputs;
  return {inputs, zoo_graphs(subject, first, inputs.size())};
}

/// dense, the layer, a readout if there are positions after it, dense.
Network zoo_network(const ZooLayer& subject);

/// |value - expected| / |expected|, Frobenius norms.
double relative_difference(const Matrix<double>& value, const Matrix<double>& expected);

}  // namespace widelimit::testing
