#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/input_graph.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit::finite {

/// The form of a place in a finite network: spatial sizes (none for vectors) and channels.
struct Form {
  Shape shape;     ///< Sizes of the spatial axes.
  Index channels;  ///< At each position, >= 1.

  friend bool operator==(const Form&, const Form&) = default;
};

/// The channels at all positions of a batch of inputs, or a gradient or tangent of the same form.
template <typename Scalar>
struct Activations {
  Matrix<Scalar> values;  ///< [inputs * positions, channels], the positions of an input one after another.
  Index inputs = 0;       ///< In the batch.
  Shape shape = {};       ///< Of each input, without channels.
  /// Number of the first input. Layers that draw (dropout) draw by the number of the input, so that equal
  /// numbers see equal draws and different ones independent draws.
  Index first_input = 0;
  /// The number of the pass: layers that draw, draw anew for every pass.
  std::uint64_t pass = 0;
  /// The graphs that the inputs carry, one each, or none.
  std::span<const InputGraph> graphs = {};
  /// Checked between layers; a layer that takes long should check it as well.
  StopRequest stop = {};

  [[nodiscard]] Index positions() const { return position_count(shape); }
  [[nodiscard]] Form form() const { return {shape, values.cols()}; }

  /// The same batch with other values, of this shape.
  [[nodiscard]] Activations with(Matrix<Scalar> other) const {
    return {std::move(other), inputs, shape, first_input, pass, graphs, stop};
  }
  [[nodiscard]] Activations with(Matrix<Scalar> other, Shape other_shape) const {
    return {std::move(other), inputs, std::move(other_shape), first_input, pass, graphs, stop};
  }
};

/// What a layer remembers of a forward pass for the backward pass and tangents; its contents are only used by the
/// layer.
template <typename Scalar>
struct Tape {
  std::vector<Matrix<Scalar>> saved = {};  ///< In the order that the layer likes.
  std::vector<Tape> parts = {};            ///< Of layers inside it.
};

}  // namespace widelimit::finite
