#include "layers/finite/aggregate.hpp"

#include <fmt/format.h>

#include "layers/common/node_factors.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::finite {
namespace {

using layers::AggregateOptions;
using layers::NodeFactors;

/// Whether P or P^T is applied to an input.
enum class Way { forth, back };

template <typename Scalar>
void aggregate(const InputGraph& graph, const AggregateOptions& options, Way way, const Matrix<Scalar>& from,
               Index first_row, Matrix<Scalar>& to) {
  const NodeFactors factors = layers::node_factors(graph, options);
  const auto add = [&](Index target, Index source, double weight) {
    const double p = factors.target[static_cast<std::size_t>(target)] * weight *
                     factors.source[static_cast<std::size_t>(source)];
    const Index out = way == Way::forth ? target : source, in = way == Way::forth ? source : target;
    to.row(first_row + out) += static_cast<Scalar>(p) * from.row(first_row + in);
  };
  for (Index node = 0; node < graph.nodes(); ++node) {
    if (options.self_loops) add(node, node, 1);
    for (const auto& [source, weight] : graph.incoming(node)) add(node, source, weight);
  }
}

/// The layer is linear and has no parameters, so it leaves nothing on the tape.
template <typename Scalar>
class Aggregate final : public FiniteLayer<Scalar> {
 public:
  Aggregate(const Site& site, const AggregateOptions& options) : form_{site.input}, options_{options} {
    if (form_.shape.size() != 1)
      throw ArgumentError(
          fmt::format("expected inputs [nodes, C] that carry a graph, got {}", axes_text(form_.shape)));
  }

  Form output() const override { return form_; }

  Activations<Scalar> forward(const Scalar*, Activations<Scalar> input, Tape<Scalar>&) const override {
    return aggregated(input, Way::forth);
  }

  Activations<Scalar> backward(const Scalar*, const Tape<Scalar>&, Activations<Scalar> gradient,
                               GradientSink<Scalar>&) const override {
    return aggregated(gradient, Way::back);
  }

  Activations<Scalar> tangent(const Scalar*, const Tape<Scalar>&, Activations<Scalar> direction,
                              const Scalar*) const override {
    return aggregated(direction, Way::forth);
  }

 private:
  Activations<Scalar> aggregated(const Activations<Scalar>& batch, Way way) const {
    Matrix<Scalar> values = Matrix<Scalar>::Zero(batch.values.rows(), batch.values.cols());
    for (Index i = 0; i < batch.inputs; ++i) {
      const InputGraph* graph = batch.graphs.empty() ? nullptr : &batch.graphs[static_cast<std::size_t>(i)];
      try {
        aggregate(layers::require_graph(graph, batch.positions()), options_, way, batch.values,
                  i * batch.positions(), values);
      } catch (const ArgumentError& error) {
        throw ArgumentError(fmt::format("aggregate: {} (input {})", error.what(), batch.first_input + i));
      }
    }
    return batch.with(std::move(values));
  }

  Form form_;
  AggregateOptions options_;
};

}  // namespace

CounterpartPointer aggregate_counterpart(const AggregateOptions& options) {
  return finite_counterpart<Aggregate>(OutputChannels::kept, options);
}

}  // namespace widelimit::finite
