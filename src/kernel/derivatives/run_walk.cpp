#include "kernel/derivatives/run_walk.hpp"

#include <algorithm>
#include <stdexcept>

#include "kernel/derivatives/entrywise.hpp"
#include "kernel/interpreter.hpp"
#include "kernel/planes/plane_windows.hpp"
#include "network/mask_stage.hpp"

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

template <typename Scalar>
void clear_guards_of(TapeEntry<Scalar>& entry, const Plane<Scalar>& plane) {
  clear_guards(entry.plane.layout, 1, plane);
}

/// The rows of a plane without guards and gaps, and back; planes of one piece only.
template <typename Scalar>
void take_rows(const PlaneLayout& layout, const GuardedRow<Scalar>& plane, std::vector<Scalar>& dense) {
  dense.clear();
  for_each_row(layout.extent, [&](Index x, Index y) {
    const Scalar* row = plane.data() + layout.at(x, y);
    dense.insert(dense.end(), row, row + layout.extent[2]);
  });
}

template <typename Scalar, typename Put>
void put_rows(const PlaneLayout& layout, const std::vector<Scalar>& dense, GuardedRow<Scalar>& plane,
              const Put& put) {
  const Scalar* next = dense.data();
  for_each_row(layout.extent, [&](Index x, Index y) {
    Scalar* row = plane.data() + layout.at(x, y);
    for (Index z = 0; z < layout.extent[2]; ++z) put(row[z], *next++);
  });
}

}  // namespace

template <typename Scalar>
RunWalk<Scalar>::RunWalk(const Program& program, const PairGeometry& geometry, std::size_t step,
                         std::vector<KeptNode<Scalar>>& kept, bool with_ntk)
    : program_{program},
      geometry_{geometry},
      run_{std::get<PlaneStep>(program.steps[step]).run},
      run_geometry_{geometry.runs[step]},
      kept_{kept},
      with_ntk_{with_ntk},
      tape_(run_.instructions.size()) {
  for (const Instruction& instruction : run_.instructions)
    affine_.push_back(affine_of(program, geometry, instruction.node));
  make_planes();
}

template <typename Scalar>
void RunWalk<Scalar>::make_planes() {
  std::array<std::vector<AxisOffsets>, 3> offsets = run_geometry_.offsets;
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

/// Instructions without positions; and while inputs are recorded, those whose result nobody reads, but for row stages.
template <typename Scalar>
bool RunWalk<Scalar>::is_skipped(std::size_t i, bool recording) const {
  if (tape_[i].plane.empty()) return true;
  if (!recording || !geometry_.demanded[run_.instructions[i].node].empty()) return false;
  return run_.instructions[i].loads || !std::holds_alternative<RowNode>(node(i).operation);
}

template <typename Scalar>
void RunWalk<Scalar>::forth(const PairSides<Scalar>& sides, const PlaneOffsets& offsets) {
  for (std::size_t i = 0; i < tape_.size(); ++i) {
    tape_[i].plane.place(run_geometry_, i, offsets, left_sizes(i), right_sizes(i));
    tape_[i].resize_for_plane(with_ntk_);
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
  for_each_row_of(to.plane, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
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
  for_each_row_of(to.plane, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
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
  to.nngp.fill(0);
  to.ntk.fill(0);
  for (Index channel = 0; channel < channels; ++channel) {
    const Scalar *left = sides.left->features(id, channel), *right = sides.right->features(id, channel);
    for_each_row_of(to.plane, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
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
    for_each_row_of(to.plane, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
      const Scalar* row = to.nngp_adjoint.data() + entry;
      for (Index z = 0; z < count; ++z) left_adjoint[a + z] += scale * row[z] * right[b + z];
      for (Index z = 0; z < count; ++z) right_adjoint[b + z] += scale * row[z] * left[a + z];
    });
  }
}

template <typename Scalar>
void RunWalk<Scalar>::convolve_shifted(const Affine& affine, const PlaneLayout& layout,
                                       const Plane<Scalar>& source, double bias,
                                       const Plane<Scalar>& target) {
  for (GuardedRow<Scalar>& row : scratch_)
    row.resize(static_cast<std::size_t>(layout.length), margin_around(layout));
  numerics::Convolution convolution{.axes = {}, .axis_count = 0, .scale = affine.scale, .bias = bias};
  for (std::size_t k = 3; k-- > 0;)
    if (affine.window.size[k] > 1)
      convolution.axes[convolution.axis_count++] = {-affine.left_front[k] * layout.stride[k],
                                                    layout.stride[k],
                                                    static_cast<std::size_t>(affine.window.size[k])};
  if (convolution.axis_count == 0) convolution.axes[convolution.axis_count++] = {0, 1, 1};
  Scalar* const scratch[] = {scratch_[0].data(), scratch_[1].data()};
  numerics::linear_rows<Scalar>().convolve(convolution, source.nngp, source.ntk, scratch, target.nngp,
                                           target.ntk, static_cast<std::size_t>(layout.length));
}

template <typename Scalar>
void RunWalk<Scalar>::convolve(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to) {
  if (affine.kind == Affine::Kind::single_position)
    return dense_plane(affine.scale, affine.bias, from.value(), from.size(), to.value());
  const auto scale = static_cast<Scalar>(affine.scale), bias = static_cast<Scalar>(affine.bias);
  if (from.plane.empty()) {
    to.nngp.fill(bias);
    return to.ntk.fill(affine.trained ? bias : Scalar{0});
  }
  if (affine.kind == Affine::Kind::shifted) {
    clear_guards_of(from, from.value());
    return convolve_shifted(affine, from.plane.layout, from.value(), affine.bias, to.value());
  }
  const PlaneLayout& layout = to.plane.layout;
  const auto windows = windows_between(affine.window, affine.left_front, from.plane, to.plane);
  const auto sum = [&](const GuardedRow<Scalar>& source, GuardedRow<Scalar>& target) {
    take_rows(from.plane.layout, source, dense_[0]);
    dense_[1].resize(static_cast<std::size_t>(product(layout.extent)));
    windows_.sum(windows, dense_[0].data(), dense_[1].data());
    target.fill(0);
    put_rows(layout, dense_[1], target, [&](Scalar& entry, Scalar value) { entry = scale * value; });
  };
  sum(from.nngp, to.nngp);
  for (std::size_t n = 0; n < to.size(); ++n) to.nngp[n] += bias;
  if (!with_ntk_) return;
  sum(from.ntk, to.ntk);
  if (affine.trained) add_times(to.nngp, 1, to.ntk);
}

/// K-bar += scale W^T (K'-bar + T'-bar) and T-bar += scale W^T T'-bar. Forth, the second kernel is the sum of the first and
/// of what windows see of it; so with the kernels exchanged the same function goes back.
template <typename Scalar>
void RunWalk<Scalar>::convolve_back(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to) {
  if (from.plane.empty()) return;
  if (affine.kind == Affine::Kind::shifted || affine.kind == Affine::Kind::single_position) {
    Affine transposed = affine;
    for (std::size_t k = 0; k < 3; ++k)
      transposed.left_front[k] = affine.window.size[k] - 1 - affine.left_front[k];
    const Plane<Scalar> adjoint = to.adjoint();
    clear_guards_of(to, adjoint);
    const Plane<Scalar> source =
        with_ntk_ ? Plane<Scalar>{adjoint.ntk, adjoint.nngp} : Plane<Scalar>{adjoint.nngp, nullptr};
    for (GuardedRow<Scalar>& row : sums_) row.resize(to.size());
    convolve_shifted(transposed, to.plane.layout, source, 0,
                     {sums_[0].data(), with_ntk_ ? sums_[1].data() : nullptr});
    if (with_ntk_) add_times(sums_[0], 1, from.ntk_adjoint);
    return add_times(sums_[with_ntk_ ? 1 : 0], 1, from.nngp_adjoint);
  }
  const auto windows = windows_between(affine.window, affine.left_front, from.plane, to.plane);
  const auto spread = [&](const GuardedRow<Scalar>& adjoint, GuardedRow<Scalar>& target) {
    take_rows(to.plane.layout, adjoint, dense_[0]);
    dense_[1].assign(static_cast<std::size_t>(product(from.plane.layout.extent)), Scalar{0});
    windows_.spread(windows, dense_[0].data(), dense_[1].data());
    const auto scale = static_cast<Scalar>(affine.scale);
    put_rows(from.plane.layout, dense_[1], target,
             [&](Scalar& entry, Scalar value) { entry += scale * value; });
  };
  spread(to.nngp_adjoint, from.nngp_adjoint);
  if (!with_ntk_) return;
  if (affine.trained) spread(to.ntk_adjoint, from.nngp_adjoint);
  spread(to.ntk_adjoint, from.ntk_adjoint);
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
  const Box box = piece_box(tape_[i].plane.axis, {0, 0, 0});
  for_each_row(box.extent, [&](Index x, Index y) {
    for (Index z = 0; z < box.extent[2]; ++z) {
      const auto entry = static_cast<std::size_t>(tape_[i].plane.layout.at(x, y) + z);
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
  to.nngp.fill(bias);
  to.ntk.fill(0);
  for_each_wrapped(i, affine, [&](std::size_t entry, std::size_t source) {
    to.nngp[entry] += scale * from.nngp[source];
    if (with_ntk_) to.ntk[entry] += scale * from.ntk[source];
  });
  if (with_ntk_) add_times(to.nngp, 1, to.ntk);
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
  local_.plane = PlacedPlane::alone(affine.offset_of_diagonal(), left, right);
  local_.resize_for_plane(with_ntk_);
  local_.clear_adjoint();
  if (local_.plane.empty()) return;
  for_each_row_of(local_.plane, left, right, [&](Index entry, Index a, Index b, Index count) {
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
  if (!to.plane.is_diagonal) {
    to.nngp.fill(0);
    return to.ntk.fill(0);
  }
  if (affine_[i]->kind == Affine::Kind::circular) {
    forth(i, sides, local.affine);
  } else {
    load_diagonal(node(i).inputs[0], *affine_[i]);
    convolve(*affine_[i], local_, to);
  }
  if (!local.stage) return;
  // The way back needs what is in front of the stage.
  to.left.assign(to.nngp.begin(), to.nngp.end());
  to.right.assign(to.ntk.begin(), to.ntk.end());
  const Plane<Scalar> plane = to.value();
  local.stage->apply({plane.nngp, plane.ntk, nullptr, nullptr, to.size()});
}

template <typename Scalar>
void RunWalk<Scalar>::back(std::size_t i, const PairSides<Scalar>& sides, const LocalAffineNode& local) {
  TapeEntry<Scalar>& to = tape_[i];
  if (!to.plane.is_diagonal) return;
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
  if (local_.plane.empty()) return;
  convolve_back(*affine_[i], local_, to);
  KeptNode<Scalar>& kept = kept_[from];
  for_each_row_of(local_.plane, geometry_.left_sizes[from], geometry_.right_sizes[from],
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
  for_each_row_of(tape_[i].plane, left_sizes(i), right_sizes(i),
                  [&](Index entry, Index a, Index /*b*/, Index count) {
                    std::copy_n(input(i, 0).nngp.data() + entry, count, record.variances(id) + a);
                  });
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
  // Guards have variance 0.
  to.left.assign(arrays * size, Scalar{0});
  to.right.assign(arrays * size, Scalar{0});
  for (std::size_t k = 0; k < arrays; ++k) {
    const bool is_variance = k + 1 == arrays;
    const auto number = static_cast<Index>(k);
    const Scalar *left = is_variance ? sides.left->variances(id) : sides.left->auxiliary(id, number),
                 *right = is_variance ? sides.right->variances(id) : sides.right->auxiliary(id, number);
    Scalar *to_left = to.left.data() + k * size, *to_right = to.right.data() + k * size;
    for_each_row_of(to.plane, left_sizes(i), right_sizes(i), [&](Index entry, Index a, Index b, Index count) {
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
  const PackedArrays<Scalar> arrays(to, row.stage->auxiliary_count());
  const Plane<Scalar> plane = to.value();
  // A stage need not know what to make of the numbers in guards.
  clear_guards_of(input(i, 0), input(i, 0).value());
  copy_plane(input(i, 0).value(), to.size(), plane);
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
      for_each_row_of(to.plane, left_sizes(i), right_sizes(i),
                      [&](Index entry, Index a, Index b, Index count) {
                        for (Index z = 0; z < count; ++z) left[a + z] += of_left[entry + z];
                        for (Index z = 0; z < count; ++z) right[b + z] += of_right[entry + z];
                      });
    }
    clear_guards_of(to, to.adjoint());
    add_times(to.nngp_adjoint, 1, from.nngp_adjoint);
    add_times(to.ntk_adjoint, 1, from.ntk_adjoint);
  }
  // What all pairs, and all other offsets, made of the variances.
  if (sides.recording && diagonal)
    for_each_row_of(to.plane, left_sizes(i), right_sizes(i),
                    [&](Index entry, Index a, Index /*b*/, Index count) {
                      Scalar* row_adjoint = from.nngp_adjoint.data() + entry;
                      for (Index z = 0; z < count; ++z) row_adjoint[z] += left[a + z];
                    });
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
