#include "kernel/run/state_worker.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel/backends/source_values.hpp"
#include "kernel/inputs/features.hpp"
#include "kernel/inputs/multiples.hpp"
#include "kernel/range/variance_checks.hpp"

namespace widelimit {
namespace {

/// Throws NumericalError if the variances of all positions are too small for the type although the input is not 0.
/// Single positions that are far smaller than others may become 0, because they are 0 beside these.
template <typename Scalar>
void check_features(const Features<Scalar>& features) {
  Scalar largest = 0;
  for (const Scalar value : features.values) largest = std::max(largest, std::abs(value));
  if (largest > 0 &&
      largest * largest / static_cast<Scalar>(features.channels) < std::numeric_limits<Scalar>::min())
    throw_vanished<Scalar>();
}

}  // namespace

template <typename Scalar>
StateWorker<Scalar>::StateWorker(const GramPlan& plan, StopRequest stop, Kernel kernel)
    : plan_{plan},
      planes_(plan.program,
              {Purpose::state, plan.states_read_ntk ? Kernel::with_ntk : kernel, plan.demand_everything}, 1,
              stop),
      pair_rows_(plan.program, plan.any_layout(), kernel, 1, 1, stop) {}

template <typename Scalar>
void StateWorker<Scalar>::run(std::span<const Scalar> input, InputState<Scalar>& state) {
  // The input passes through the network with itself, as a tile of one pair. Each step that leaves something in the
  // state (variances before row stages, attention weights) records it on the way.
  write_features(input, state);
  if (!plan_.vectors_only) planes_.record_state(state);
  record_pair_rows(state, [&](NodeId node) {
    const auto [nngp, ntk] = planes_.readout(node, 0);
    return FeatureStage::Values{static_cast<double>(nngp), static_cast<double>(ntk)};
  });
}

template <typename Scalar>
void StateWorker<Scalar>::record_pair_rows(InputState<Scalar>& state, const Readout& readout) {
  for (std::size_t s = 0; s < pair_rows_.source_nodes().size(); ++s) {
    const NodeId node = pair_rows_.source_nodes()[s];
    const Plane<Scalar> source = pair_rows_.source(s);
    const auto put = [&](const auto& values) {
      source.nngp[0] = static_cast<Scalar>(values.nngp);
      if (source.ntk != nullptr) source.ntk[0] = static_cast<Scalar>(values.ntk);
    };
    const InputState<Scalar>* itself = &state;
    if (is_input(plan_, node))
      // The NTK of an input is 0, like that of pairs.
      put(FeatureStage::Values{record_variance(node, state), 0});
    else if (feature_stage(plan_, node) != nullptr)
      feature_values<Scalar>(plan_, node, state, {&itself, 1},
                             [&](std::size_t, const FeatureStage::Values& values) { put(values); });
    else
      put(readout(node));
  }
  pair_rows_.record_state(state);
}

/// Keeps the variance of an input without positions.
template <typename Scalar>
Scalar StateWorker<Scalar>::record_variance(NodeId node, InputState<Scalar>& state) const {
  const std::span<const Scalar> vector = vector_of(plan_, node, state);
  const auto variance = static_cast<Scalar>(vector_variance(vector));
  name_layer(plan_.program.graph.nodes[node], [&] {
    check_input_variance(variance,
                         std::all_of(vector.begin(), vector.end(), [](Scalar x) { return x == 0; }));
  });
  // PairWorker reads the diagonal entries of products from here.
  return state.extra(node)[0] = variance;
}

template <typename Scalar>
void StateWorker<Scalar>::write_features(std::span<const Scalar> input, InputState<Scalar>& state) const {
  const auto& nodes = plan_.program.graph.nodes;
  const PositionMask* mask = state.mask();
  const std::span<const std::uint8_t> counts =
      mask == nullptr ? std::span<const std::uint8_t>() : std::span<const std::uint8_t>(mask->counts);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const auto* transforms = input_transforms(nodes[id].operation);
    if (transforms == nullptr) continue;
    const FeatureStage* feature = feature_stage(plan_, id);
    // An input without positions or layers of its own is already its features.
    if (feature == nullptr && transforms->empty() && state.layout().shape.empty()) {
      std::copy(input.begin(), input.end(), state.array(id, 0));
      continue;
    }
    const Features<Scalar> features =
        transformed_features(input, state.layout().shape, plan_.channels, *transforms, counts);
    if (feature != nullptr) {
      feature->prepare(
          FeatureView<Scalar>{{features.values.data(), features.channels, position_count(features.shape)},
                              features.shape},
          state.extra(id));
      continue;
    }
    if (features.shape.empty()) {
      std::copy(features.values.begin(), features.values.end(), state.array(id, 0));
      continue;
    }
    name_layer(nodes[id], [&] { check_features(features); });
    // Channel by channel, the positions are laid out like the plane of offset 0, guards included, so that planes can
    // be multiplied in place. The guards stay zero from the allocation.
    const PlaneLayout& layout = state.layout().planes[id];
    const Scalar* row = features.values.data();
    for (Index channel = 0; channel < features.channels; ++channel)
      for_each_row(layout.extent, [&](Index x, Index y) {
        std::copy_n(row, layout.extent[2], state.array(id, channel) + layout.at(x, y));
        row += layout.extent[2];
      });
  }
}

template class StateWorker<float>;
template class StateWorker<double>;

}  // namespace widelimit
