#include "kernel/derivatives/run_walk.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernel/derivatives/entrywise.hpp"
#include "kernel/interpreter.hpp"
#include "network/mask_stage.hpp"

namespace widelimit {
namespace {

/// The demanded offsets of a run's root, 0 first if it is among them.
std::vector<Index3> demanded_in_order(const Offsets& demanded) {
  std::vector<Index3> offsets;
  constexpr Index3 zero{0, 0, 0};
  if (demanded.contains(zero)) offsets.push_back(zero);
  demanded.for_each([&](const Index3& offset) {
    if (offset != zero) offsets.push_back(offset);
  });
  return offsets;
}

std::optional<Affine> affine_of(const Program& program, const PairGeometry& geometry, NodeId id) {
  const Operation& operation = program.graph.nodes[id].operation;
  const auto* affine = std::get_if<AffineNode>(&operation);
  if (const auto* local = std::get_if<LocalAffineNode>(&operation)) affine = &local->affine;
  if (affine == nullptr) return {};
  const NodeId input = program.graph.nodes[id].inputs[0];
  return Affine(*affine, geometry.left_sizes[input], geometry.right_sizes[input]);
}

}  // namespace

template <typename Scalar>
RunWalk<Scalar>::RunWalk(const Program& program, const PairGeometry& geometry, std::size_t step,
                         std::vector<KeptNode<Scalar>>& kept, bool with_ntk)
    : program_{program},
      geometry_{geometry},
      run_{std::get<PlaneStep>(program.steps[step]).run},
      maps_{geometry.runs[step].maps},
      kept_{kept},
      with_ntk_{with_ntk},
      tape_(run_.instructions.size()) {
  for (const Instruction& instruction : run_.instructions)
    affine_.push_back(affine_of(program, geometry, instruction.node));
  offsets_ = demanded_in_order(geometry.demanded[run_.root]);
  recorded_offsets_ = offsets_;
  if (offsets_.empty() || offsets_.front() != Index3{0, 0, 0})
    recorded_offsets_.insert(recorded_offsets_.begin(), {0, 0, 0});
}

/// Instructions without positions; and while inputs are recorded, those whose result nobody reads, but for row stages.
template <typename Scalar>
bool RunWalk<Scalar>::is_skipped(std::size_t i, bool recording) const {
  if (tape_[i].box.empty()) return true;
  if (!recording || !geometry_.demanded[run_.instructions[i].node].empty()) return false;
  return run_.instructions[i].loads || !std::holds_alternative<RowNode>(node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::forth(const PairSides<Scalar>& sides, const Index3& offset) {
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    Index3 here;
    for (std::size_t k = 0; k < 3; ++k) here[k] = maps_[i].stride[k] * offset[k] + maps_[i].shift[k];
    tape_[i].place(Box(left_sizes(i), right_sizes(i), here), with_ntk_);
    if (!is_skipped(i, sides.recording)) forth(i, sides);
  }
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& sides) {
  if (run_.instructions[i].loads) return load(i);
  std::visit(
      [&](const auto& operation) {
        if constexpr (requires { this->forth(i, sides, operation); })
          forth(i, sides, operation);
        else
          throw_no_instruction(run_.instructions[i]);
      },
      node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::begin_back() {
  for (TapeEntry<Scalar>& entry : tape_) entry.clear_adjoint();
}

template <typename Scalar>
void RunWalk<Scalar>::back(const PairSides<Scalar>& sides) {
  for (std::size_t i = tape_.size(); i-- > 0;)
    if (!is_skipped(i, sides.recording)) back(i, sides);
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& sides) {
  if (run_.instructions[i].loads) return unload(i);
  std::visit(
      [&](const auto& operation) {
        if constexpr (requires { this->back(i, sides, operation); })
          back(i, sides, operation);
        else
          throw_no_instruction(run_.instructions[i]);
      },
      node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::load(std::size_t i) {
  KeptNode<Scalar>& kept = kept_[run_.instructions[i].node];
  TapeEntry<Scalar>& to = tape_[i];
  for_each_row_of(to.box, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
    for (Index z = 0; z < count; ++z) {
      const auto from = static_cast<std::size_t>((a + z) * kept.columns + b + z),
                 at = static_cast<std::size_t>(entry + z);
      to.nngp[at] = kept.nngp[from];
      if (with_ntk_) to.ntk[at] = kept.ntk[from];
    }
  });
}

template <typename Scalar>
void RunWalk<Scalar>::unload(std::size_t i) {
  KeptNode<Scalar>& kept = kept_[run_.instructions[i].node];
  const TapeEntry<Scalar>& to = tape_[i];
  for_each_row_of(to.box, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
    for (Index z = 0; z < count; ++z) {
      const auto from = static_cast<std::size_t>((a + z) * kept.columns + b + z),
                 at = static_cast<std::size_t>(entry + z);
      kept.nngp_adjoint[from] += to.nngp_adjoint[at];
      if (with_ntk_) kept.ntk_adjoint[from] += to.ntk_adjoint[at];
    }
  });
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& sides, const InputNode& /*node*/) {
  TapeEntry<Scalar>& to = tape_[i];
  const NodeId id = run_.instructions[i].node;
  const Index channels = sides.left->layout->channels[id];
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  std::fill(to.nngp.begin(), to.nngp.end(), Scalar{0});
  std::fill(to.ntk.begin(), to.ntk.end(), Scalar{0});
  for (Index channel = 0; channel < channels; ++channel) {
    const Scalar *left = sides.left->features(id, channel), *right = sides.right->features(id, channel);
    for_each_row_of(to.box, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
      Scalar* row = to.nngp.data() + entry;
      for (Index z = 0; z < count; ++z) row[z] += scale * left[a + z] * right[b + z];
    });
  }
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& sides, const InputNode& /*node*/) {
  const TapeEntry<Scalar>& to = tape_[i];
  const NodeId id = run_.instructions[i].node;
  const Index channels = sides.left->layout->channels[id];
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  for (Index channel = 0; channel < channels; ++channel) {
    const Scalar *left = sides.left->features(id, channel), *right = sides.right->features(id, channel);
    Scalar *left_adjoint = sides.left_adjoint->features(id, channel),
           *right_adjoint = sides.right_adjoint->features(id, channel);
    for_each_row_of(to.box, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
      const Scalar* row = to.nngp_adjoint.data() + entry;
      for (Index z = 0; z < count; ++z) left_adjoint[a + z] += scale * row[z] * right[b + z];
      for (Index z = 0; z < count; ++z) right_adjoint[b + z] += scale * row[z] * left[a + z];
    });
  }
}

template <typename Scalar>
void RunWalk<Scalar>::convolve(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to) {
  const auto scale = static_cast<Scalar>(affine.scale), bias = static_cast<Scalar>(affine.bias);
  const bool reads = !from.box.empty();
  const auto windows = windows_between(affine.window, affine.left_front, from.box, to.box);
  const auto sum = [&](const std::vector<Scalar>& source, std::vector<Scalar>& target) {
    if (reads)
      windows_.sum(windows, source.data(), target.data());
    else
      std::fill(target.begin(), target.end(), Scalar{0});
  };
  sum(from.nngp, to.nngp);
  for (Scalar& value : to.nngp) value = scale * value + bias;
  if (!with_ntk_) return;
  sum(from.ntk, to.ntk);
  for (std::size_t n = 0; n < to.ntk.size(); ++n)
    to.ntk[n] = scale * to.ntk[n] + (affine.trained ? to.nngp[n] : Scalar{0});
}

template <typename Scalar>
void RunWalk<Scalar>::convolve_back(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to) {
  if (from.box.empty()) return;
  const auto scale = static_cast<Scalar>(affine.scale);
  const auto windows = windows_between(affine.window, affine.left_front, from.box, to.box);
  sums_.resize(to.size());
  const bool joins = with_ntk_ && affine.trained;
  for (std::size_t n = 0; n < sums_.size(); ++n)
    sums_[n] = scale * (joins ? to.nngp_adjoint[n] + to.ntk_adjoint[n] : to.nngp_adjoint[n]);
  windows_.spread(windows, sums_.data(), from.nngp_adjoint.data());
  if (!with_ntk_) return;
  for (std::size_t n = 0; n < sums_.size(); ++n) sums_[n] = scale * to.ntk_adjoint[n];
  windows_.spread(windows, sums_.data(), from.ntk_adjoint.data());
}

template <typename Scalar>
template <typename Body>
void RunWalk<Scalar>::for_each_wrapped(std::size_t i, const Affine& affine, const Body& body) const {
  const NodeId from = node(i).inputs[0];
  const Index3 &left = geometry_.left_sizes[from], &right = geometry_.right_sizes[from];
  const auto wrapped = [&](Index position, Index tap, std::size_t k, const Index3& front,
                           const Index3& size) {
    return ((affine.window.stride[k] * position + tap - front[k]) % size[k] + size[k]) % size[k];
  };
  const Box& box = tape_[i].box;
  std::size_t entry = 0;
  for_each_row(box.extent, [&](Index x, Index y) {
    for (Index z = 0; z < box.extent[2]; ++z, ++entry) {
      const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
      for (Index u = 0; u < affine.window.size[0]; ++u)
        for (Index v = 0; v < affine.window.size[1]; ++v)
          for (Index w = 0; w < affine.window.size[2]; ++w) {
            const Index3 tap{u, v, w};
            Index3 source_left, source_right;
            for (std::size_t k = 0; k < 3; ++k) {
              source_left[k] = wrapped(a[k], tap[k], k, affine.left_front, left);
              source_right[k] = wrapped(a[k] + box.offset[k], tap[k], k, affine.right_front, right);
            }
            body(entry, static_cast<std::size_t>(position_number(source_left, left) * product(right) +
                                                 position_number(source_right, right)));
          }
    }
  });
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& /*sides*/, const AffineNode& /*node*/) {
  const Affine& affine = *affine_[i];
  TapeEntry<Scalar>& to = tape_[i];
  if (affine.kind != Affine::Kind::circular) return convolve(affine, input(i, 0), to);
  const KeptNode<Scalar>& from = kept_[node(i).inputs[0]];
  const auto scale = static_cast<Scalar>(affine.scale), bias = static_cast<Scalar>(affine.bias);
  std::fill(to.nngp.begin(), to.nngp.end(), bias);
  std::fill(to.ntk.begin(), to.ntk.end(), Scalar{0});
  for_each_wrapped(i, affine, [&](std::size_t entry, std::size_t source) {
    to.nngp[entry] += scale * from.nngp[source];
    if (with_ntk_) to.ntk[entry] += scale * from.ntk[source];
  });
  for (std::size_t n = 0; n < to.ntk.size(); ++n) to.ntk[n] += to.nngp[n];
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& /*sides*/, const AffineNode& /*node*/) {
  const Affine& affine = *affine_[i];
  TapeEntry<Scalar>& to = tape_[i];
  if (affine.kind != Affine::Kind::circular) return convolve_back(affine, input(i, 0), to);
  KeptNode<Scalar>& from = kept_[node(i).inputs[0]];
  const auto scale = static_cast<Scalar>(affine.scale);
  for_each_wrapped(i, affine, [&](std::size_t entry, std::size_t source) {
    const Scalar ntk = with_ntk_ ? to.ntk_adjoint[entry] : Scalar{0};
    from.nngp_adjoint[source] += scale * (to.nngp_adjoint[entry] + ntk);
    if (with_ntk_) from.ntk_adjoint[source] += scale * ntk;
  });
}

template <typename Scalar>
void RunWalk<Scalar>::load_diagonal(NodeId from, const Affine& affine) {
  const Index3 &left = geometry_.left_sizes[from], &right = geometry_.right_sizes[from];
  const KeptNode<Scalar>& kept = kept_[from];
  local_.place(Box(left, right, affine.offset_of_diagonal()), with_ntk_);
  local_.clear_adjoint();
  if (local_.box.empty()) return;
  for_each_row_of(local_.box, left, right, [&](Index entry, Index a, Index b, Index count) {
    for (Index z = 0; z < count; ++z) {
      const auto source = static_cast<std::size_t>((a + z) * kept.columns + b + z),
                 at = static_cast<std::size_t>(entry + z);
      local_.nngp[at] = kept.nngp[source];
      if (with_ntk_) local_.ntk[at] = kept.ntk[source];
    }
  });
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& sides, const LocalAffineNode& local) {
  TapeEntry<Scalar>& to = tape_[i];
  if (to.box.offset != Index3{0, 0, 0}) {
    std::fill(to.nngp.begin(), to.nngp.end(), Scalar{0});
    std::fill(to.ntk.begin(), to.ntk.end(), Scalar{0});
    return;
  }
  if (affine_[i]->kind == Affine::Kind::circular) {
    forth(i, sides, local.affine);
  } else {
    load_diagonal(node(i).inputs[0], *affine_[i]);
    convolve(*affine_[i], local_, to);
  }
  if (!local.stage) return;
  // The way back needs what is in front of the stage.
  to.left = to.nngp;
  to.right = to.ntk;
  const Plane<Scalar> plane = to.value();
  local.stage->apply({plane.nngp, plane.ntk, nullptr, nullptr, to.size()});
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& sides, const LocalAffineNode& local) {
  TapeEntry<Scalar>& to = tape_[i];
  if (to.box.offset != Index3{0, 0, 0}) return;
  if (local.stage) {
    variances_.assign(2 * to.size(), Scalar{0});
    const Plane<Scalar> adjoint = to.adjoint();
    local.stage->apply_adjoint({to.left.data(), with_ntk_ ? to.right.data() : nullptr, nullptr, nullptr,
                                nullptr, nullptr, adjoint.nngp, adjoint.ntk, variances_.data(),
                                variances_.data() + to.size(), to.size()});
  }
  if (affine_[i]->kind == Affine::Kind::circular) return back(i, sides, local.affine);
  const NodeId from = node(i).inputs[0];
  load_diagonal(from, *affine_[i]);
  if (local_.box.empty()) return;
  convolve_back(*affine_[i], local_, to);
  KeptNode<Scalar>& kept = kept_[from];
  for_each_row_of(local_.box, geometry_.left_sizes[from], geometry_.right_sizes[from],
                  [&](Index entry, Index a, Index b, Index count) {
                    for (Index z = 0; z < count; ++z) {
                      const auto source = static_cast<std::size_t>((a + z) * kept.columns + b + z),
                                 at = static_cast<std::size_t>(entry + z);
                      kept.nngp_adjoint[source] += local_.nngp_adjoint[at];
                      if (with_ntk_) kept.ntk_adjoint[source] += local_.ntk_adjoint[at];
                    }
                  });
}

/// The variances in front of a row stage and its auxiliary arrays, of all positions: offset 0.
template <typename Scalar>
void RunWalk<Scalar>::record(std::size_t i, const PairSides<Scalar>& sides, const RowStage& stage) {
  const NodeId id = run_.instructions[i].node;
  InputRecord<Scalar>& record = *sides.left;
  const auto positions = static_cast<std::size_t>(record.layout->positions[id]);
  std::copy_n(input(i, 0).nngp.data(), positions, record.variances(id));
  std::vector<Scalar*> arrays;
  for (Index k = 0; k < record.layout->auxiliaries[id]; ++k) arrays.push_back(record.auxiliary(id, k));
  name_layer(node(i), [&] {
    check_variances(record.variances(id), static_cast<Index>(positions));
    if (const auto* mask = dynamic_cast<const MaskStage*>(&stage))
      mask->fill(*record.mask, arrays[0]);
    else
      stage.prepare(record.variances(id), positions, arrays.data());
  });
}

/// Brings what a row stage reads of the two inputs into the order of the plane.
template <typename Scalar>
void RunWalk<Scalar>::pack(std::size_t i, const PairSides<Scalar>& sides, const RowStage& stage) {
  TapeEntry<Scalar>& to = tape_[i];
  const NodeId id = run_.instructions[i].node;
  const std::size_t arrays = stage.auxiliary_count() + 1, size = to.size();
  to.left.resize(arrays * size);
  to.right.resize(arrays * size);
  for (std::size_t k = 0; k < arrays; ++k) {
    const bool is_variance = k + 1 == arrays;
    const auto number = static_cast<Index>(k);
    const Scalar *left = is_variance ? sides.left->variances(id) : sides.left->auxiliary(id, number),
                 *right = is_variance ? sides.right->variances(id) : sides.right->auxiliary(id, number);
    Scalar *to_left = to.left.data() + k * size, *to_right = to.right.data() + k * size;
    for_each_row_of(to.box, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
      std::copy_n(left + a, count, to_left + entry);
      std::copy_n(right + b, count, to_right + entry);
    });
  }
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& sides, const RowNode& row) {
  if (sides.recording && is_diagonal(i, sides)) record(i, sides, *row.stage);
  if (sides.recording && geometry_.demanded[run_.instructions[i].node].empty()) return;
  TapeEntry<Scalar>& to = tape_[i];
  pack(i, sides, *row.stage);
  to.nngp = input(i, 0).nngp;
  to.ntk = input(i, 0).ntk;
  const PackedArrays<Scalar> arrays(to, row.stage->auxiliary_count());
  const Plane<Scalar> plane = to.value();
  const numerics::DualRow<Scalar> entries{plane.nngp, plane.ntk, arrays.left.data(), arrays.right.data(),
                                          to.size()};
  if (is_diagonal(i, sides))
    row.stage->apply_self(entries);
  else
    row.stage->apply(entries);
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& sides, const RowNode& row) {
  TapeEntry<Scalar>&to = tape_[i], &from = input(i, 0);
  const NodeId id = run_.instructions[i].node;
  const bool diagonal = is_diagonal(i, sides);
  Scalar *left = sides.left_adjoint->variances(id), *right = sides.right_adjoint->variances(id);
  if (!sides.recording || !geometry_.demanded[id].empty()) {
    const PackedArrays<Scalar> arrays(to, row.stage->auxiliary_count());
    const Plane<Scalar> value = from.value(), adjoint = to.adjoint();
    variances_.assign(2 * to.size(), Scalar{0});
    const numerics::AdjointRow<Scalar> entries{value.nngp,
                                               value.ntk,
                                               arrays.left_variance,
                                               arrays.right_variance,
                                               arrays.left.data(),
                                               arrays.right.data(),
                                               adjoint.nngp,
                                               adjoint.ntk,
                                               variances_.data(),
                                               variances_.data() + to.size(),
                                               to.size()};
    if (diagonal) {
      row.stage->apply_self_adjoint(entries);
    } else {
      row.stage->apply_adjoint(entries);
      const Scalar *of_left = variances_.data(), *of_right = variances_.data() + to.size();
      for_each_row_of(to.box, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
        for (Index z = 0; z < count; ++z) left[a + z] += of_left[entry + z];
        for (Index z = 0; z < count; ++z) right[b + z] += of_right[entry + z];
      });
    }
    add_times(to.nngp_adjoint, 1, from.nngp_adjoint);
    add_times(to.ntk_adjoint, 1, from.ntk_adjoint);
  }
  // What all pairs, and all other offsets, made of the variances.
  if (sides.recording && diagonal)
    for (std::size_t a = 0; a < from.nngp_adjoint.size(); ++a) from.nngp_adjoint[a] += left[a];
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& /*sides*/, const SumNode& sum) {
  sum_forth(sum, inputs(i), tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& /*sides*/, const SumNode& sum) {
  sum_back(sum, inputs(i), tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::forth(std::size_t i, const PairSides<Scalar>& /*sides*/, const ProductNode& product) {
  product_forth(product, inputs(i), tape_[i]);
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& /*sides*/, const ProductNode& product) {
  product_back(product, inputs(i), tape_[i]);
}

template <typename Scalar>
std::vector<TapeEntry<Scalar>*> RunWalk<Scalar>::inputs(std::size_t i) {
  std::vector<TapeEntry<Scalar>*> entries;
  for (const std::size_t input : run_.instructions[i].inputs) entries.push_back(&tape_[input]);
  return entries;
}

template class RunWalk<float>;
template class RunWalk<double>;

}  // namespace widelimit
