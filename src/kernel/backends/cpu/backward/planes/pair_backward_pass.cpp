#include "kernel/backends/cpu/backward/planes/pair_backward_pass.hpp"

#include <algorithm>
#include <optional>

#include "kernel/backends/cpu/backward/planes/kept_windows.hpp"
#include "kernel/backends/cpu/planes/written_entries.hpp"
#include "kernel/range/variance_checks.hpp"
#include "network/mask_rule.hpp"
#include "numerics/gemm.hpp"

namespace widelimit {

template <typename Scalar>
PairBackwardPass<Scalar>::PairBackwardPass(const Program& program, const PairGeometry& geometry,
                                           BackwardScope scope)
    : program_{program},
      geometry_{geometry},
      with_ntk_{scope.with_ntk},
      gathering_(program.graph.nodes.size()) {
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    const auto* plane = std::get_if<PlaneStep>(&program.steps[step]);
    // Which entries a pooling or map gathers depends on the shapes only, so one list serves all pairs of this
    // geometry.
    if (plane != nullptr) gathering_[plane->target] = gathering_of(program, geometry, plane->target);
    chains_.push_back(plane == nullptr
                          ? nullptr
                          : std::make_unique<ChainBackwardPass<Scalar>>(program, geometry, step, scope));
  }
}

template <typename Scalar>
void PairBackwardPass<Scalar>::make_room(std::size_t pairs) {
  const std::size_t nodes = program_.graph.nodes.size();
  while (pairs_.size() < pairs) {
    pairs_.push_back({std::vector<KernelValues<Scalar>>(nodes), std::vector<KernelValues<Scalar>>(nodes)});
    std::vector<KeptNode<Scalar>>& fresh = kept_.emplace_back(nodes);
    for (NodeId id = 0; id < nodes; ++id) {
      // Nodes that are not kept live in planes only and are evaluated again in the backward pass.
      if (!program_.kept[id]) continue;
      fresh[id].rows = product(geometry_.left_sizes[id]);
      fresh[id].columns = product(geometry_.right_sizes[id]);
    }
  }
}

template <typename Scalar>
void PairBackwardPass<Scalar>::forward(const PairBlock<Scalar>& block, Readouts readouts,
                                       const StopRequest& stop) {
  make_room(block.pairs.size());
  for (std::size_t step = 0; step < program_.steps.size(); ++step) {
    if (const auto* plane = std::get_if<PlaneStep>(&program_.steps[step])) {
      // Runs that end at readouts are evaluated in the backward pass anyway, plane by plane.
      if (!reads_out(node(plane->target).operation) || readouts == Readouts::wanted)
        forward(step, *plane, block, stop);
    }
    for (std::size_t number = 0; number < block.pairs.size(); ++number) {
      if (const auto* input = std::get_if<InputStep>(&program_.steps[step])) forward(*input, block, number);
      if (const auto* pair = std::get_if<PairStep>(&program_.steps[step]))
        forward(*pair, block, number, stop);
    }
  }
}

template <typename Scalar>
void PairBackwardPass<Scalar>::backward(const PairBlock<Scalar>& block, const StopRequest& stop) {
  for (std::size_t number = 0; number < block.pairs.size(); ++number) {
    for (KeptNode<Scalar>& kept : kept_[number]) kept.clear_adjoint();
  }
  // Steps in reverse: when a step passes backward, all its consumers have added to its adjoint.
  for (std::size_t step = program_.steps.size(); step-- > 0;) {
    if (const auto* plane = std::get_if<PlaneStep>(&program_.steps[step]))
      backward(step, *plane, block, stop);
    for (std::size_t number = 0; number < block.pairs.size(); ++number) {
      if (const auto* pair = std::get_if<PairStep>(&program_.steps[step]))
        backward(*pair, block, number, stop);
      if (const auto* input = std::get_if<InputStep>(&program_.steps[step])) backward(*input, block, number);
    }
  }
}

template <typename Scalar>
bool PairBackwardPass<Scalar>::is_near_ties() const {
  return std::any_of(chains_.begin(), chains_.end(),
                     [](const auto& chain) { return chain != nullptr && chain->is_near_ties(); });
}

template <typename Scalar>
void PairBackwardPass<Scalar>::forward(std::size_t step, const PlaneStep& plane,
                                       const PairBlock<Scalar>& block, const StopRequest& stop) {
  for (std::size_t number = 0; number < block.pairs.size(); ++number) {
    // Readouts, poolings and maps add up planes of all offsets, so they begin with zeros.
    pairs_[number].readouts[plane.target] = {};
    kept_[number][plane.target].clear(with_ntk_);
  }
  ChainBackwardPass<Scalar>& chain = *chains_[step];
  chain.begin_block(block, kept_);
  for (const auto& root : chain.planes(block.recording)) {
    stop.check();
    chain.begin_plane(root.offsets);
    const PlacedPlane& at = chain.root().plane;
    for (const Stack& stack : chain.stacks()) {
      chain.forward(stack, stop);
      if (!root.is_demanded || at.empty()) continue;
      for (Index n = 0; n < stack.count; ++n)
        put(plane.target, at, chain.root().value + n * at.layout.length,
            static_cast<std::size_t>(stack.first_pair + n));
    }
  }
}

/// Each plane passes forward once more before it passes backward, while it is in the cache. Offset 0 comes last:
/// while inputs are recorded, variances are the entries of offset 0 before a row stage, and all other offsets add to
/// their adjoints.
template <typename Scalar>
void PairBackwardPass<Scalar>::backward(std::size_t step, const PlaneStep& plane,
                                        const PairBlock<Scalar>& block, const StopRequest& stop) {
  ChainBackwardPass<Scalar>& chain = *chains_[step];
  const auto& planes = chain.planes(block.recording);
  chain.begin_block(block, kept_);
  for (auto root = planes.rbegin(); root != planes.rend(); ++root) {
    stop.check();
    chain.begin_plane(root->offsets);
    const PlacedPlane& at = chain.root().plane;
    for (const Stack& stack : chain.stacks()) {
      chain.forward(stack, stop);
      chain.begin_backward();
      if (root->is_demanded && !at.empty()) {
        const Plane<Scalar> adjoint = chain.begin_root();
        for (Index n = 0; n < stack.count; ++n)
          take_adjoint(plane.target, at, adjoint + n * at.layout.length,
                       static_cast<std::size_t>(stack.first_pair + n));
      }
      chain.backward(stop);
    }
    chain.end_plane();
  }
  chain.end_block();
}

template <typename Scalar>
void PairBackwardPass<Scalar>::put_readout(NodeId target, const PlacedPlane& at, const Plane<Scalar>& plane,
                                           std::size_t pair) {
  if (reads_of(node(target).operation) == Reads::equal_positions && !at.is_diagonal) return;
  const double weight = readout_weight(program_.graph, geometry_, target);
  const NodeId input = node(target).inputs[0];
  const auto& rows = numerics::linear_rows<Scalar>();
  double nngp = 0, ntk = 0;
  for_each_row_of(at, geometry_.left_sizes[input], geometry_.right_sizes[input],
                  [&](Index entry, Index /*a*/, Index /*b*/, Index count) {
                    nngp += rows.sum(plane.nngp + entry, static_cast<std::size_t>(count));
                    if (with_ntk_) ntk += rows.sum(plane.ntk + entry, static_cast<std::size_t>(count));
                  });
  pairs_[pair].readouts[target].nngp += static_cast<Scalar>(weight * nngp);
  pairs_[pair].readouts[target].ntk += static_cast<Scalar>(weight * ntk);
}

template <typename Scalar>
void PairBackwardPass<Scalar>::put(NodeId target, const PlacedPlane& at, const Plane<Scalar>& plane,
                                   std::size_t pair) {
  // A chain ends in one of three ways: a readout adds up its planes, a pooling or map gathers them, and anything else
  // keeps them.
  if (reads_out(node(target).operation)) return put_readout(target, at, plane, pair);
  KeptNode<Scalar>& kept = kept_[pair][target];
  if (const EntryGathering* gathering = gathering_[target].get())
    return gathering->for_each_meeting(at, [&](std::size_t from, std::size_t to, double weight) {
      kept.nngp[to] += static_cast<Scalar>(weight) * plane.nngp[from];
      if (with_ntk_) kept.ntk[to] += static_cast<Scalar>(weight) * plane.ntk[from];
    });
  for_each_kept(at, geometry_.left_sizes[target], geometry_.right_sizes[target],
                [&](std::size_t from, std::size_t to) {
                  kept.nngp[to] = plane.nngp[from];
                  if (with_ntk_) kept.ntk[to] = plane.ntk[from];
                });
}

template <typename Scalar>
void PairBackwardPass<Scalar>::take_adjoint(NodeId target, const PlacedPlane& at,
                                            const Plane<Scalar>& adjoint, std::size_t pair) const {
  const Operation& operation = node(target).operation;
  const auto size = static_cast<std::size_t>(at.layout.length);
  if (reads_out(operation)) {
    // A readout is a weighted sum of entries, so that all of them have the same adjoint, or 0 off the diagonal of
    // flatten.
    const bool reads_entry = reads_of(operation) == Reads::all_positions || at.is_diagonal;
    const auto weight =
        static_cast<Scalar>(reads_entry ? readout_weight(program_.graph, geometry_, target) : 0.0);
    const KernelValues<Scalar>& of_readout = pairs_[pair].readout_adjoints[target];
    return fill_plane(adjoint, size, weight * of_readout.nngp, weight * of_readout.ntk);
  }
  fill_plane(adjoint, size, Scalar{0}, Scalar{0});
  const KeptNode<Scalar>& kept = kept_[pair][target];
  if (const EntryGathering* gathering = gathering_[target].get())
    return gathering->for_each_meeting(at, [&](std::size_t to, std::size_t from, double weight) {
      adjoint.nngp[to] += static_cast<Scalar>(weight) * kept.nngp_adjoint[from];
      if (with_ntk_) adjoint.ntk[to] += static_cast<Scalar>(weight) * kept.ntk_adjoint[from];
    });
  for_each_kept(at, geometry_.left_sizes[target], geometry_.right_sizes[target],
                [&](std::size_t to, std::size_t from) {
                  adjoint.nngp[to] = kept.nngp_adjoint[from];
                  if (with_ntk_) adjoint.ntk[to] = kept.ntk_adjoint[from];
                });
}

/// K = X^T X' / C, of features X [C, d] and X' [C, d'], is one matrix product for each pair.
template <typename Scalar>
void PairBackwardPass<Scalar>::forward(const InputStep& input, const PairBlock<Scalar>& block,
                                       std::size_t number) {
  KeptNode<Scalar>& kept = kept_[number][input.node];
  kept.clear(with_ntk_);
  const InputRecord<Scalar>& left = *block.left_of(number).record;
  const Index channels = left.layout->channels[input.node];
  numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, kept.rows, kept.columns, channels,
                 Scalar{1} / static_cast<Scalar>(channels),
                 {block.left_of(number).record->features(input.node, 0), kept.rows},
                 {block.right_of(number).record->features(input.node, 0), kept.columns}, Scalar{0},
                 kept.nngp.data(), kept.columns);
}

template <typename Scalar>
void PairBackwardPass<Scalar>::backward(const InputStep& input, const PairBlock<Scalar>& block,
                                        std::size_t number) {
  const KeptNode<Scalar>& kept = kept_[number][input.node];
  const BlockInput<Scalar>&left = block.left_of(number), &right = block.right_of(number);
  const Index channels = left.record->layout->channels[input.node];
  // X-bar = X' K-bar^T / C and X'-bar = X K-bar / C, added to what other pairs gave.
  // T = 0 at the inputs, so that its adjoint ends here.
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  const numerics::MatrixView<Scalar> adjoint{kept.nngp_adjoint.data(), kept.columns};
  if (block.left_wanted)
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::yes, channels, kept.rows, kept.columns,
                   scale, {right.record->features(input.node, 0), kept.columns}, adjoint, Scalar{1},
                   left.adjoint->features(input.node, 0), kept.rows);
  if (block.right_wanted)
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, channels, kept.columns, kept.rows, scale,
                   {left.record->features(input.node, 0), kept.rows}, adjoint, Scalar{1},
                   right.adjoint->features(input.node, 0), kept.columns);
}

template <typename Scalar>
PairView<Scalar> PairBackwardPass<Scalar>::view(NodeId id, const PairBlock<Scalar>& block, std::size_t number,
                                                const StopRequest& stop) {
  const NodeId input = node(id).inputs[0];
  const PairShapes& shapes = geometry_.shapes;
  auto view = pair_view<Scalar>(stage_input(id, *block.left_of(number).record, shapes.left[input]),
                                stage_input(id, *block.right_of(number).record, shapes.right[input]),
                                kept_[number][input].value());
  view.same_input = block.pairs[number].same_input;
  view.wanted = geometry_.demanded[id].entries(geometry_.left_sizes[id], geometry_.right_sizes[id]);
  view.stop = stop;
  return view;
}

template <typename Scalar>
template <typename Body>
void PairBackwardPass<Scalar>::with_self_view(NodeId id, const PairBlock<Scalar>& block,
                                              const StopRequest& stop, const Body& body) {
  const InputRecord<Scalar>& record = *block.left[0].record;
  const NodeId input = node(id).inputs[0];
  const KeptNode<Scalar>& kept = kept_[0][input];
  SelfView<Scalar> itself{
      {kept.nngp.data(), kept.rows, kept.columns}, geometry_.shapes.left[input], stop, {}, record.graph};
  // The mask must outlive the view, which only refers to it.
  std::optional<PositionMask> mask;
  if (const MaskRule* rule = mask_rule_of(node(id).operation))
    itself.counts = mask.emplace(rule->behind(*record.mask)).counts;
  body(itself);
}

template <typename Scalar>
void PairBackwardPass<Scalar>::forward(const PairStep& pair, const PairBlock<Scalar>& block,
                                       std::size_t number, const StopRequest& stop) {
  const PairStage& stage = *pair_stage_of(node(pair.node).operation);
  std::vector<KeptNode<Scalar>>& kept = kept_[number];
  KeptNode<Scalar>& before = kept[node(pair.node).inputs[0]];
  if (block.recording) {
    InputRecord<Scalar>& record = *block.left[0].record;
    Scalar* variances = record.variances(pair.node);
    for (Index a = 0; a < before.rows; ++a)
      // An input with itself has its variances on the diagonal of its covariance.
      variances[a] = before.nngp[static_cast<std::size_t>(a * (before.columns + 1))];
    name_layer(node(pair.node), [&] {
      check_variances(variances, before.rows);
      with_self_view(pair.node, block, stop,
                     [&](const SelfView<Scalar>& itself) { stage.prepare(itself, record.state(pair.node)); });
    });
  }
  KeptNode<Scalar>& after = kept[pair.node];
  after.clear(with_ntk_);
  // Of an input with itself only the state may be needed.
  if (geometry_.demanded[pair.node].empty()) return;
  const PairView<Scalar> seen = view(pair.node, block, number, stop);
  scratch_.resize(stage.scratch_size(seen.left_shape, seen.right_shape));
  auto result = pair_result<Scalar>(after.value(), after.rows, after.columns, scratch_.data());
  name_layer(node(pair.node), [&] { apply_pair_stage(stage, seen, result); });
}

template <typename Scalar>
void PairBackwardPass<Scalar>::backward(const PairStep& pair, const PairBlock<Scalar>& block,
                                        std::size_t number, const StopRequest& stop) {
  const PairStage& stage = *pair_stage_of(node(pair.node).operation);
  std::vector<KeptNode<Scalar>>& kept = kept_[number];
  KeptNode<Scalar>&before = kept[node(pair.node).inputs[0]], &after = kept[pair.node];
  const Plane<Scalar> from = before.adjoint(), to = after.adjoint();
  // Without the NTK its matrices are empty.
  const auto rows_of = [&](Index count) { return with_ntk_ ? count : 0; };
  RecordAdjoint<Scalar>&left = *block.left_of(number).adjoint, &right = *block.right_of(number).adjoint;
  if (!geometry_.demanded[pair.node].empty()) {
    const PairAdjoint<Scalar> adjoint{.nngp_after = {to.nngp, after.rows, after.columns},
                                      .ntk_after = {to.ntk, rows_of(after.rows), rows_of(after.columns)},
                                      .nngp = {from.nngp, before.rows, before.columns},
                                      .ntk = {from.ntk, rows_of(before.rows), rows_of(before.columns)},
                                      .left_variance = left.variances(pair.node),
                                      .right_variance = right.variances(pair.node),
                                      .left_state = left.state(pair.node),
                                      .right_state = right.state(pair.node)};
    name_layer(node(pair.node), [&] { stage.apply_adjoint(view(pair.node, block, number, stop), adjoint); });
  }
  // The input's state depends on its covariance with itself, and its variances are that covariance's diagonal. All
  // pairs have contributed to the adjoints of both, which now join the adjoint of the covariance.
  if (!block.recording) return;
  InputRecord<Scalar>& record = *block.left[0].record;
  with_self_view(pair.node, block, stop, [&](const SelfView<Scalar>& itself) {
    stage.prepare_adjoint(itself, {.state = record.state(pair.node),
                                   .state_adjoint = left.state(pair.node),
                                   .nngp = {from.nngp, before.rows, before.columns}});
  });
  const Scalar* variances = left.variances(pair.node);
  for (Index a = 0; a < before.rows; ++a) from.nngp[a * (before.columns + 1)] += variances[a];
}

template class PairBackwardPass<float>;
template class PairBackwardPass<double>;

}  // namespace widelimit
