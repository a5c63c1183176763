#include "kernel/derivatives/run_walk.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernel/derivatives/kept_windows.hpp"
#include "kernel/interpreter.hpp"
#include "kernel/planes/plane_windows.hpp"

namespace widelimit {
namespace {

constexpr AxisOffsets zero{{0, 0}, 1};
constexpr PlaneOffsets zero_offsets{zero, zero, zero};

std::optional<Affine> affine_of(const Program& program, const PairGeometry& geometry, NodeId id) {
  const Node& node = program.graph.nodes[id];
  const auto of = [&](const AffineNode& affine) {
    return Affine(affine, geometry.left_sizes[node.inputs[0]], geometry.right_sizes[node.inputs[0]]);
  };
  if (const auto* affine = std::get_if<AffineNode>(&node.operation)) return of(*affine);
  const auto* local = std::get_if<LocalAffineNode>(&node.operation);
  if (local == nullptr) return {};
  Affine affine = of(local->affine);
  // Its planes have no guards for shifted copies.
  if (affine.kind != Affine::Kind::circular) affine.kind = Affine::Kind::strided;
  return affine;
}

bool has_zero(const std::array<std::vector<AxisOffsets>, 3>& offsets) {
  return std::all_of(offsets.begin(), offsets.end(), [](const std::vector<AxisOffsets>& axis) {
    return std::find(axis.begin(), axis.end(), zero) != axis.end();
  });
}

/// Planes of complementary offsets are taken apart where a run gathers entries from elsewhere than shifted copies do.
bool takes_planes_apart(const std::vector<std::optional<Affine>>& affine) {
  return std::any_of(affine.begin(), affine.end(), [](const std::optional<Affine>& of_instruction) {
    return of_instruction && of_instruction->kind != Affine::Kind::single_position &&
           of_instruction->kind != Affine::Kind::shifted;
  });
}

std::vector<AxisOffsets> apart(const std::vector<AxisOffsets>& offsets) {
  std::vector<AxisOffsets> result;
  for (const AxisOffsets& several : offsets)
    for (std::size_t n = 0; n < static_cast<std::size_t>(several.count); ++n)
      result.push_back({{several.offset[n], 0}, 1});
  return result;
}

}  // namespace

template <typename Scalar>
RunWalk<Scalar>::RunWalk(const Program& program, const PairGeometry& geometry, std::size_t step,
                         bool with_ntk)
    : of_{program, geometry, std::get<PlaneStep>(program.steps[step]).run, geometry.runs[step], with_ntk},
      tape_(of_.run.instructions.size()),
      left_planes_(PairSide::left, of_),
      right_planes_(PairSide::right, of_) {
  for (std::size_t i = 0; i < tape_.size(); ++i) affine_.push_back(affine_of(program, geometry, of_.id(i)));
  make_planes();
}

template <typename Scalar>
void RunWalk<Scalar>::make_planes() {
  std::array<std::vector<AxisOffsets>, 3> offsets = of_.run_geometry.offsets;
  if (takes_planes_apart(affine_))
    for (std::vector<AxisOffsets>& axis : offsets) axis = apart(axis);
  const bool zero_demanded = has_zero(offsets);
  if (zero_demanded) planes_.push_back({zero_offsets, true});
  for (const AxisOffsets& z : offsets[2])
    for (const AxisOffsets& x : offsets[0])
      for (const AxisOffsets& y : offsets[1])
        if (PlaneOffsets{x, y, z} != zero_offsets) planes_.push_back({{x, y, z}, true});
  recorded_planes_ = planes_;
  if (!zero_demanded) recorded_planes_.insert(recorded_planes_.begin(), {zero_offsets, false});
}

template <typename Scalar>
TapeInputs<Scalar> RunWalk<Scalar>::inputs(std::size_t i) {
  TapeInputs<Scalar> entries;
  for (const std::size_t input : of_.run.instructions[i].inputs) entries.push_back(&tape_[input]);
  return entries;
}

/// Instructions without positions; and while inputs are recorded, those whose result nobody reads, but for row stages.
template <typename Scalar>
bool RunWalk<Scalar>::is_skipped(std::size_t i) const {
  if (tape_[i].plane.empty()) return true;
  if (!now_.block->recording || !of_.geometry.demanded[of_.id(i)].empty()) return false;
  return of_.run.instructions[i].loads || !std::holds_alternative<RowNode>(of_.node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::begin_plane(const PairBlock<Scalar>& block, const PlaneOffsets& offsets) {
  now_ = {&block, 0, nullptr};
  left_planes_.begin_offset(block.left.size());
  right_planes_.begin_offset(block.right.size());
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    tape_[i].plane.place(of_.run_geometry, i, offsets, of_.left_sizes(i), of_.right_sizes(i));
    tape_[i].resize_for_plane(of_.with_ntk);
  }
}

template <typename Scalar>
void RunWalk<Scalar>::end_plane() {
  left_planes_.end_offset(now_.block->left, tape_);
  right_planes_.end_offset(now_.block->right, tape_);
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t pair, std::vector<KeptNode<Scalar>>& kept_nodes) {
  now_.pair = pair;
  now_.kept = &kept_nodes;
  for (std::size_t i = 0; i < tape_.size(); ++i)
    if (!is_skipped(i)) evaluate(i);
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i) {
  if (of_.run.instructions[i].loads) return load(i);
  std::visit(
      [&](const auto& operation) {
        if constexpr (requires { this->evaluate(i, operation); })
          evaluate(i, operation);
        else
          throw_no_instruction(of_.run.instructions[i]);
      },
      of_.node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::begin_back() {
  for (TapeEntry<Scalar>& entry : tape_) entry.clear_adjoint();
}

template <typename Scalar>
void RunWalk<Scalar>::back() {
  for (std::size_t i = tape_.size(); i-- > 0;)
    if (!is_skipped(i)) go_back(i);
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i) {
  if (of_.run.instructions[i].loads) return unload(i);
  std::visit(
      [&](const auto& operation) {
        if constexpr (requires { this->go_back(i, operation); })
          go_back(i, operation);
        else
          throw_no_instruction(of_.run.instructions[i]);
      },
      of_.node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::load(std::size_t i) {
  const KeptNode<Scalar>& from = kept(of_.id(i));
  TapeEntry<Scalar>& to = tape_[i];
  for_each_kept(to.plane, of_.left_sizes(i), of_.right_sizes(i), [&](std::size_t entry, std::size_t source) {
    to.nngp[entry] = from.nngp[source];
    if (of_.with_ntk) to.ntk[entry] = from.ntk[source];
  });
}

template <typename Scalar>
void RunWalk<Scalar>::unload(std::size_t i) {
  KeptNode<Scalar>& from = kept(of_.id(i));
  const TapeEntry<Scalar>& to = tape_[i];
  for_each_kept(to.plane, of_.left_sizes(i), of_.right_sizes(i), [&](std::size_t entry, std::size_t source) {
    from.nngp_adjoint[source] += to.nngp_adjoint[entry];
    if (of_.with_ntk) from.ntk_adjoint[source] += to.ntk_adjoint[entry];
  });
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i, const InputNode& /*node*/) {
  TapeEntry<Scalar>& to = tape_[i];
  const NodeId id = of_.id(i);
  const Index channels = left().record->layout->channels[id];
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  to.nngp.fill(0);
  to.ntk.fill(0);
  for (Index channel = 0; channel < channels; ++channel) {
    const Scalar *from_left = left().record->features(id, channel),
                 *from_right = right().record->features(id, channel);
    for_each_row_of(to.plane, of_.left_sizes(i), of_.right_sizes(i),
                    [&](Index entry, Index a, Index b, Index count) {
                      Scalar* row = to.nngp.data() + entry;
                      for (Index z = 0; z < count; ++z)
                        row[z] += scale * from_left[a + z] * from_right[b + z];
                    });
  }
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i, const InputNode& /*node*/) {
  const TapeEntry<Scalar>& to = tape_[i];
  const NodeId id = of_.id(i);
  const Index channels = left().record->layout->channels[id];
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  for (Index channel = 0; channel < channels; ++channel) {
    const Scalar *from_left = left().record->features(id, channel),
                 *from_right = right().record->features(id, channel);
    Scalar *left_adjoint = left().adjoint->features(id, channel),
           *right_adjoint = right().adjoint->features(id, channel);
    for_each_row_of(to.plane, of_.left_sizes(i), of_.right_sizes(i),
                    [&](Index entry, Index a, Index b, Index count) {
                      const Scalar* row = to.nngp_adjoint.data() + entry;
                      for (Index z = 0; z < count; ++z)
                        left_adjoint[a + z] += scale * row[z] * from_right[b + z];
                      for (Index z = 0; z < count; ++z)
                        right_adjoint[b + z] += scale * row[z] * from_left[a + z];
                    });
  }
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i, const AffineNode& /*node*/) {
  const Affine& affine = *affine_[i];
  TapeEntry<Scalar>& to = tape_[i];
  if (affine.kind != Affine::Kind::circular) return convolution_.forth(affine, input(i, 0), to);
  const NodeId id = of_.node(i).inputs[0];
  const KeptNode<Scalar>& from = kept(id);
  const auto scale = static_cast<Scalar>(affine.scale);
  to.nngp.fill(static_cast<Scalar>(affine.bias));
  to.ntk.fill(0);
  for_each_wrapped(affine, to.plane, of_.geometry.left_sizes[id], of_.geometry.right_sizes[id],
                   [&](std::size_t entry, std::size_t source) {
                     to.nngp[entry] += scale * from.nngp[source];
                     if (of_.with_ntk) to.ntk[entry] += scale * from.ntk[source];
                   });
  if (of_.with_ntk) add_times(to.nngp, 1, to.ntk);
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i, const AffineNode& /*node*/) {
  const Affine& affine = *affine_[i];
  TapeEntry<Scalar>& to = tape_[i];
  if (affine.kind != Affine::Kind::circular) return convolution_.back(affine, input(i, 0), to);
  const NodeId id = of_.node(i).inputs[0];
  KeptNode<Scalar>& from = kept(id);
  const auto scale = static_cast<Scalar>(affine.scale);
  for_each_wrapped(affine, to.plane, of_.geometry.left_sizes[id], of_.geometry.right_sizes[id],
                   [&](std::size_t entry, std::size_t source) {
                     const Scalar ntk = of_.with_ntk ? to.ntk_adjoint[entry] : Scalar{0};
                     from.nngp_adjoint[source] += scale * (to.nngp_adjoint[entry] + ntk);
                     if (of_.with_ntk) from.ntk_adjoint[source] += scale * ntk;
                   });
}

template <typename Scalar>
TapeEntry<Scalar> RunWalk<Scalar>::diagonal_in_front(std::size_t i) {
  const NodeId id = of_.node(i).inputs[0];
  const Index3 &left_size = of_.geometry.left_sizes[id], &right_size = of_.geometry.right_sizes[id];
  const KeptNode<Scalar>& from = kept(id);
  TapeEntry<Scalar> diagonal;
  diagonal.plane = PlacedPlane::alone(affine_[i]->offset_of_diagonal(), left_size, right_size);
  diagonal.resize_for_plane(of_.with_ntk);
  diagonal.clear_adjoint();
  for_each_kept(diagonal.plane, left_size, right_size, [&](std::size_t entry, std::size_t source) {
    diagonal.nngp[entry] = from.nngp[source];
    if (of_.with_ntk) diagonal.ntk[entry] = from.ntk[source];
  });
  return diagonal;
}

/// In front of the stage.
template <typename Scalar>
void RunWalk<Scalar>::sum_locally(std::size_t i, const LocalAffineNode& local) {
  if (affine_[i]->kind == Affine::Kind::circular) return evaluate(i, local.affine);
  TapeEntry<Scalar> from = diagonal_in_front(i);
  convolution_.forth(*affine_[i], from, tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i, const LocalAffineNode& local) {
  TapeEntry<Scalar>& to = tape_[i];
  if (!to.plane.is_diagonal) {
    to.nngp.fill(0);
    return to.ntk.fill(0);
  }
  sum_locally(i, local);
  const Plane<Scalar> plane = to.value();
  if (local.stage) local.stage->apply({plane.nngp, plane.ntk, nullptr, nullptr, to.size()});
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i, const LocalAffineNode& local) {
  TapeEntry<Scalar>& to = tape_[i];
  if (!to.plane.is_diagonal) return;
  if (local.stage) {
    sum_locally(i, local);
    const Plane<Scalar> adjoint = to.adjoint(), value = to.value();
    variances_.resize(std::max(variances_.size(), 2 * to.size()));
    local.stage->apply_adjoint({value.nngp, value.ntk, nullptr, nullptr, nullptr, nullptr, adjoint.nngp,
                                adjoint.ntk, variances_.data(), variances_.data() + to.size(), to.size()});
  }
  if (affine_[i]->kind == Affine::Kind::circular) return go_back(i, local.affine);
  TapeEntry<Scalar> from = diagonal_in_front(i);
  if (from.plane.empty()) return;
  convolution_.back(*affine_[i], from, to);
  const NodeId id = of_.node(i).inputs[0];
  KeptNode<Scalar>& source_node = kept(id);
  for_each_kept(from.plane, of_.geometry.left_sizes[id], of_.geometry.right_sizes[id],
                [&](std::size_t entry, std::size_t source) {
                  source_node.nngp_adjoint[source] += from.nngp_adjoint[entry];
                  if (of_.with_ntk) source_node.ntk_adjoint[source] += from.ntk_adjoint[entry];
                });
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i, const SumNode& sum) {
  sum_forth(sum, inputs(i), tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i, const SumNode& sum) {
  sum_back(sum, inputs(i), tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::evaluate(std::size_t i, const ProductNode& product) {
  product_forth(product, inputs(i), tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::go_back(std::size_t i, const ProductNode& product) {
  product_back(product, inputs(i), tape_[i]);
}

template class RunWalk<float>;
template class RunWalk<double>;

}  // namespace widelimit
