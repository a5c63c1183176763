#include "kernel/derivatives/pair_walk.hpp"

#include <algorithm>
#include <optional>

#include "kernel/derivatives/kept_windows.hpp"
#include "kernel/variance_checks.hpp"
#include "network/mask_rule.hpp"
#include "network/plane_mapping.hpp"

namespace widelimit {

template <typename Scalar>
PairWalk<Scalar>::PairWalk(const Program& program, const PairGeometry& geometry, bool with_ntk)
    : program_{program},
      geometry_{geometry},
      with_ntk_{with_ntk},
      needs_forth_{std::find(program.kept.begin(), program.kept.end(), true) != program.kept.end()},
      gathering_(program.graph.nodes.size()) {
  for (std::size_t step = 0; step < program.steps.size(); ++step) {
    const auto* plane = std::get_if<PlaneStep>(&program.steps[step]);
    if (plane != nullptr) gathering_[plane->target] = gathering_of(plane->target);
    runs_.push_back(plane == nullptr ? nullptr
                                     : std::make_unique<RunWalk<Scalar>>(program, geometry, step, with_ntk));
  }
}

template <typename Scalar>
typename PairWalk<Scalar>::PairNodes& PairWalk<Scalar>::place(std::size_t pair) {
  const std::size_t nodes = program_.graph.nodes.size();
  while (pairs_.size() <= pair) {
    PairNodes& fresh = pairs_.emplace_back(PairNodes{std::vector<KeptNode<Scalar>>(nodes),
                                                     std::vector<KernelValues<Scalar>>(nodes),
                                                     std::vector<KernelValues<Scalar>>(nodes)});
    for (NodeId id = 0; id < nodes; ++id) {
      if (!program_.kept[id]) continue;
      fresh.kept[id].rows = product(geometry_.left_sizes[id]);
      fresh.kept[id].columns = product(geometry_.right_sizes[id]);
    }
  }
  return pairs_[pair];
}

/// Null for nodes that are no more than kept, and readouts.
template <typename Scalar>
std::unique_ptr<EntryGathering> PairWalk<Scalar>::gathering_of(NodeId id) const {
  if (const auto* pool = std::get_if<PoolNode>(&node(id).operation)) {
    const NodeId input = node(id).inputs[0];
    return std::make_unique<EntryGathering>(*pool, geometry_.left_sizes[input], geometry_.right_sizes[input]);
  }
  const auto* pair = std::get_if<PairNode>(&node(id).operation);
  const PlaneMapping* mapping = pair == nullptr ? nullptr : plane_mapping(*pair->stage);
  if (mapping == nullptr) return nullptr;
  const NodeId input = node(id).inputs[0];
  return std::make_unique<EntryGathering>(*mapping, geometry_.shapes.left[input],
                                          geometry_.shapes.right[input]);
}

template <typename Scalar>
void PairWalk<Scalar>::forth(const PairBlock<Scalar>& block, const StopRequest& stop) {
  for (std::size_t step = 0; step < program_.steps.size(); ++step) {
    if (const auto* plane = std::get_if<PlaneStep>(&program_.steps[step])) forth(step, *plane, block, stop);
    if (const auto* pair = std::get_if<PairStep>(&program_.steps[step]))
      for (std::size_t number = 0; number < block.pairs.size(); ++number) forth(*pair, block, number, stop);
  }
}

template <typename Scalar>
void PairWalk<Scalar>::back(const PairBlock<Scalar>& block, const StopRequest& stop) {
  for (std::size_t number = 0; number < block.pairs.size(); ++number)
    for (KeptNode<Scalar>& kept : place(number).kept) kept.clear_adjoint();
  for (std::size_t step = program_.steps.size(); step-- > 0;) {
    if (const auto* plane = std::get_if<PlaneStep>(&program_.steps[step])) back(step, *plane, block, stop);
    if (const auto* pair = std::get_if<PairStep>(&program_.steps[step]))
      for (std::size_t number = 0; number < block.pairs.size(); ++number) back(*pair, block, number, stop);
  }
}

template <typename Scalar>
void PairWalk<Scalar>::forth(std::size_t step, const PlaneStep& plane, const PairBlock<Scalar>& block,
                             const StopRequest& stop) {
  for (std::size_t number = 0; number < block.pairs.size(); ++number) {
    place(number).readouts[plane.target] = {};
    place(number).kept[plane.target].clear(with_ntk_);
  }
  RunWalk<Scalar>& run = *runs_[step];
  for (const auto& root : run.planes(block.recording)) {
    stop.check();
    run.begin_plane(block, root.offsets);
    for (std::size_t number = 0; number < block.pairs.size(); ++number) {
      run.forth(number, pairs_[number].kept);
      if (root.is_demanded && !run.root().plane.empty()) put(plane.target, run.root(), pairs_[number]);
    }
  }
}

/// Offset 0 comes last: while inputs are recorded, all others add to the adjoints of its variances.
template <typename Scalar>
void PairWalk<Scalar>::back(std::size_t step, const PlaneStep& plane, const PairBlock<Scalar>& block,
                            const StopRequest& stop) {
  RunWalk<Scalar>& run = *runs_[step];
  const auto& planes = run.planes(block.recording);
  for (auto root = planes.rbegin(); root != planes.rend(); ++root) {
    stop.check();
    run.begin_plane(block, root->offsets);
    for (std::size_t number = 0; number < block.pairs.size(); ++number) {
      run.forth(number, pairs_[number].kept);
      run.begin_back();
      if (root->is_demanded && !run.root().plane.empty())
        take_adjoint(plane.target, run.root(), pairs_[number]);
      run.back();
    }
    run.end_plane();
  }
}

template <typename Scalar>
void PairWalk<Scalar>::put(NodeId target, TapeEntry<Scalar>& plane, PairNodes& nodes) const {
  const Operation& operation = node(target).operation;
  if (const auto* readout = std::get_if<ReadoutNode>(&operation)) {
    if (readout->kind == ReadoutKind::flatten && !plane.plane.is_diagonal) return;
    const double weight = readout_weight(program_.graph, geometry_, target);
    const NodeId input = node(target).inputs[0];
    const Index3 &left_of_target = geometry_.left_sizes[input],
                 &right_of_target = geometry_.right_sizes[input];
    double nngp = 0, ntk = 0;
    for_each_row_of(plane.plane, left_of_target, right_of_target,
                    [&](Index entry, Index /*a*/, Index /*b*/, Index count) {
                      for (Index z = entry; z < entry + count; ++z) {
                        nngp += static_cast<double>(plane.nngp[static_cast<std::size_t>(z)]);
                        if (with_ntk_) ntk += static_cast<double>(plane.ntk[static_cast<std::size_t>(z)]);
                      }
                    });
    nodes.readouts[target].nngp += static_cast<Scalar>(weight * nngp);
    nodes.readouts[target].ntk += static_cast<Scalar>(weight * ntk);
    return;
  }
  KeptNode<Scalar>& kept = nodes.kept[target];
  if (const EntryGathering* gathering = gathering_[target].get())
    return gathering->for_each_meeting(plane.plane, [&](std::size_t from, std::size_t to, double weight) {
      kept.nngp[to] += static_cast<Scalar>(weight) * plane.nngp[from];
      if (with_ntk_) kept.ntk[to] += static_cast<Scalar>(weight) * plane.ntk[from];
    });
  for_each_kept(plane.plane, geometry_.left_sizes[target], geometry_.right_sizes[target],
                [&](std::size_t from, std::size_t to) {
                  kept.nngp[to] = plane.nngp[from];
                  if (with_ntk_) kept.ntk[to] = plane.ntk[from];
                });
}

template <typename Scalar>
void PairWalk<Scalar>::take_adjoint(NodeId target, TapeEntry<Scalar>& plane, const PairNodes& nodes) const {
  const Operation& operation = node(target).operation;
  if (const auto* readout = std::get_if<ReadoutNode>(&operation)) {
    if (readout->kind == ReadoutKind::flatten && !plane.plane.is_diagonal) return;
    const auto weight = static_cast<Scalar>(readout_weight(program_.graph, geometry_, target));
    plane.nngp_adjoint.fill(weight * nodes.readout_adjoints[target].nngp);
    plane.ntk_adjoint.fill(weight * nodes.readout_adjoints[target].ntk);
    return;
  }
  const KeptNode<Scalar>& kept = nodes.kept[target];
  if (const EntryGathering* gathering = gathering_[target].get())
    return gathering->for_each_meeting(plane.plane, [&](std::size_t to, std::size_t from, double weight) {
      plane.nngp_adjoint[to] += static_cast<Scalar>(weight) * kept.nngp_adjoint[from];
      if (with_ntk_) plane.ntk_adjoint[to] += static_cast<Scalar>(weight) * kept.ntk_adjoint[from];
    });
  for_each_kept(plane.plane, geometry_.left_sizes[target], geometry_.right_sizes[target],
                [&](std::size_t to, std::size_t from) {
                  plane.nngp_adjoint[to] += kept.nngp_adjoint[from];
                  if (with_ntk_) plane.ntk_adjoint[to] += kept.ntk_adjoint[from];
                });
}

template <typename Scalar>
PairView<Scalar> PairWalk<Scalar>::view(NodeId id, const PairBlock<Scalar>& block, std::size_t number,
                                        const StopRequest& stop) {
  const NodeId input = node(id).inputs[0];
  const PairShapes& shapes = geometry_.shapes;
  auto view = pair_view<Scalar>(stage_input(id, *block.left_of(number).record, shapes.left[input]),
                                stage_input(id, *block.right_of(number).record, shapes.right[input]),
                                pairs_[number].kept[input].value());
  view.same_input = block.pairs[number].same_input;
  view.wanted = geometry_.demanded[id].entries(geometry_.left_sizes[id], geometry_.right_sizes[id]);
  view.stop = stop;
  return view;
}

template <typename Scalar>
template <typename Body>
void PairWalk<Scalar>::with_self_view(NodeId id, const PairBlock<Scalar>& block, const StopRequest& stop,
                                      const Body& body) {
  const InputRecord<Scalar>& record = *block.left[0].record;
  const NodeId input = node(id).inputs[0];
  const KeptNode<Scalar>& kept = pairs_[0].kept[input];
  SelfView<Scalar> itself{
      {kept.nngp.data(), kept.rows, kept.columns}, geometry_.shapes.left[input], stop, {}, record.graph};
  std::optional<PositionMask> mask;
  if (const MaskRulePointer& rule = std::get<PairNode>(node(id).operation).mask)
    itself.counts = mask.emplace(rule->behind(*record.mask)).counts;
  body(itself);
}

template <typename Scalar>
void PairWalk<Scalar>::forth(const PairStep& pair, const PairBlock<Scalar>& block, std::size_t number,
                             const StopRequest& stop) {
  const auto& operation = std::get<PairNode>(node(pair.node).operation);
  std::vector<KeptNode<Scalar>>& kept = place(number).kept;
  KeptNode<Scalar>& in_front = kept[node(pair.node).inputs[0]];
  if (block.recording) {
    InputRecord<Scalar>& record = *block.left[0].record;
    Scalar* variances = record.variances(pair.node);
    for (Index a = 0; a < in_front.rows; ++a)
      variances[a] = in_front.nngp[static_cast<std::size_t>(a * (in_front.columns + 1))];
    name_layer(node(pair.node), [&] {
      check_variances(variances, in_front.rows);
      with_self_view(pair.node, block, stop, [&](const SelfView<Scalar>& itself) {
        operation.stage->prepare(itself, record.state(pair.node));
      });
    });
  }
  KeptNode<Scalar>& behind = kept[pair.node];
  behind.clear(with_ntk_);
  if (geometry_.demanded[pair.node].empty()) return;
  const PairView<Scalar> seen = view(pair.node, block, number, stop);
  scratch_.resize(operation.stage->scratch_size(seen.left_shape, seen.right_shape));
  auto result = pair_result<Scalar>(behind.value(), behind.rows, behind.columns, scratch_.data());
  name_layer(node(pair.node), [&] { operation.stage->apply(seen, result); });
}

template <typename Scalar>
void PairWalk<Scalar>::back(const PairStep& pair, const PairBlock<Scalar>& block, std::size_t number,
                            const StopRequest& stop) {
  const auto& operation = std::get<PairNode>(node(pair.node).operation);
  std::vector<KeptNode<Scalar>>& kept = pairs_[number].kept;
  KeptNode<Scalar>&in_front = kept[node(pair.node).inputs[0]], &behind = kept[pair.node];
  const Plane<Scalar> from = in_front.adjoint(), to = behind.adjoint();
  const auto rows_of = [&](Index count) { return with_ntk_ ? count : 0; };
  RecordAdjoint<Scalar>&left = *block.left_of(number).adjoint, &right = *block.right_of(number).adjoint;
  if (!geometry_.demanded[pair.node].empty()) {
    const PairAdjoint<Scalar> adjoint{.nngp_behind = {to.nngp, behind.rows, behind.columns},
                                      .ntk_behind = {to.ntk, rows_of(behind.rows), rows_of(behind.columns)},
                                      .nngp = {from.nngp, in_front.rows, in_front.columns},
                                      .ntk = {from.ntk, rows_of(in_front.rows), rows_of(in_front.columns)},
                                      .left_variance = left.variances(pair.node),
                                      .right_variance = right.variances(pair.node),
                                      .left_state = left.state(pair.node),
                                      .right_state = right.state(pair.node)};
    operation.stage->apply_adjoint(view(pair.node, block, number, stop), adjoint);
  }
  if (!block.recording) return;
  InputRecord<Scalar>& record = *block.left[0].record;
  with_self_view(pair.node, block, stop, [&](const SelfView<Scalar>& itself) {
    operation.stage->prepare_adjoint(itself, {.state = record.state(pair.node),
                                              .state_adjoint = left.state(pair.node),
                                              .nngp = {from.nngp, in_front.rows, in_front.columns}});
  });
  const Scalar* variances = left.variances(pair.node);
  for (Index a = 0; a < in_front.rows; ++a) from.nngp[a * (in_front.columns + 1)] += variances[a];
}

template class PairWalk<float>;
template class PairWalk<double>;

}  // namespace widelimit
