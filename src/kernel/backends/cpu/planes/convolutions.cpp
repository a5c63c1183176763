#include "kernel/backends/cpu/planes/convolutions.hpp"

#include "kernel/backends/cpu/planes/circular_windows.hpp"
#include "kernel/backends/cpu/planes/plane_windows.hpp"

namespace widelimit {
namespace {

/// The result of a convolution whose windows read nothing: K' = b and T' = K'.
template <typename Scalar>
void fill_bias(const Affine& affine, Index size, const Plane<Scalar>& target) {
  const auto bias = static_cast<Scalar>(affine.bias);
  fill_plane(target, static_cast<std::size_t>(size), bias, bias);
}

}  // namespace

template <typename Scalar>
void convolve(const ConvolvedPlanes& planes, const numerics::PlaneWindows& windows,
              const Plane<Scalar>& source, const Plane<Scalar>& target,
              const std::array<Scalar*, 2>& scratch) {
  const auto& [affine, from, to, count] = planes;
  if (affine.kind == AffineKind::single_position)
    return dense_plane(affine.scale, affine.bias, source, planes.target_size(), target);
  if (from.empty()) return fill_bias(affine, count * to.layout.length, target);
  const numerics::PlaneSteps steps{count, from.layout.length, to.layout.length};
  if (!affine.trained) return select_strided(windows, steps, source, target);
  if (affine.kind == AffineKind::shifted)
    convolve_shifted(affine.window, affine.left_front, to.layout, count, affine.scale, affine.bias, source,
                     target, scratch);
  else
    convolve_strided(windows, steps, source, target);
}

template <typename Scalar>
void convolve(const PlacedInstruction<Scalar>& from, const PlacedInstruction<Scalar>& to, Index stacked,
              const std::array<Scalar*, 2>& scratch) {
  const Plane<Scalar> source = from.result();
  const bool reads_guards = to.affine->kind != AffineKind::single_position && !from.at().empty();
  if (reads_guards && from.instruction->gaps != Gaps::zero) clear_guards(from.at().layout, stacked, source);
  convolve({*to.affine, from.at(), to.at(), stacked}, to.windows, source, to.planes, scratch);
}

namespace {

/// Evaluates the entries of equal positions after the convolution, whose windows do not go around borders.
template <typename Scalar>
void convolve_diagonal(const TileWork<Scalar>& work, NodeId input, const PlacedInstruction<Scalar>& to,
                       Index pair, const Plane<Scalar>& target) {
  const Affine& affine = *to.affine;
  const Index length = to.at().layout.length;
  const PairGeometry& geometry = work.pair.geometry;
  const auto from = PlacedPlane::alone(affine.offset_of_diagonal(), geometry.left_sizes[input],
                                       geometry.right_sizes[input]);
  if (from.empty()) return fill_bias(affine, length, target);
  // The kept input is needed at one offset only, whatever the offsets of the chain, so it is loaded here and not by an
  // instruction.
  const Plane<Scalar> source = work.workspace.scratch(1);
  work.stores.load(input, from, pair, 1, source);
  convolve_strided(strided_windows(affine, from, to.at()), {1, from.layout.length, length}, source, target);
}

}  // namespace

template <typename Scalar>
void convolve_locally(const TileWork<Scalar>& work, NodeId input, const PlacedInstruction<Scalar>& to,
                      Index pair, const Plane<Scalar>& target) {
  const Affine& affine = *to.affine;
  const Index length = to.at().layout.length;
  if (!to.at().is_diagonal) return fill_plane(target, static_cast<std::size_t>(length), Scalar{0}, Scalar{0});
  if (affine.kind == AffineKind::circular)
    convolve_around(work, input, to, pair, target);
  else
    convolve_diagonal(work, input, to, pair, target);
  if (const RowStage* stage = local_stage_of(work.pair.node(to.instruction->node).operation))
    stage->apply({target.nngp, target.ntk, nullptr, nullptr, static_cast<std::size_t>(length)});
}

template <typename Scalar>
void convolve_around(const TileWork<Scalar>& work, NodeId input, const PlacedInstruction<Scalar>& to,
                     Index pair, const Plane<Scalar>& target) {
  const StoreLayout& layout = work.stores.layout(input);
  const Plane<Scalar> source = work.stores.at(input, pair);
  const Affine& affine = *to.affine;
  const Window3& window = affine.window;
  const Index3 &left = work.pair.geometry.left_sizes[input], &right = work.pair.geometry.right_sizes[input];
  const auto scale = static_cast<Scalar>(affine.scale), bias = static_cast<Scalar>(affine.bias);
  const Box box = piece_box(to.at().axis, {0, 0, 0});
  for_each_row(box.extent, [&](Index x, Index y) {
    for (Index z = 0; z < box.extent[2]; ++z) {
      const Index3 a{box.origin[0] + x, box.origin[1] + y, box.origin[2] + z};
      const Index3 b{a[0] + box.offset[0], a[1] + box.offset[1], a[2] + box.offset[2]};
      // The window is summed first and then scaled, like that of an input with itself, so that both have the same
      // bits.
      Scalar nngp = 0, ntk = 0;
      for_each_tap(window, [&](const Index3& tap) {
        const Index entry = layout.entry(wrapped_position(window, a, tap, affine.left_front, left),
                                         wrapped_position(window, b, tap, affine.right_front, right));
        nngp += source.nngp[entry];
        if (source.ntk != nullptr) ntk += source.ntk[entry];
      });
      const Index place = to.at().layout.at(x, y) + z;
      target.nngp[place] = scale * nngp + bias;
      if (target.ntk != nullptr) target.ntk[place] = target.nngp[place] + scale * ntk;
    }
  });
}

template void convolve(const ConvolvedPlanes&, const numerics::PlaneWindows&, const Plane<float>&,
                       const Plane<float>&, const std::array<float*, 2>&);
template void convolve(const ConvolvedPlanes&, const numerics::PlaneWindows&, const Plane<double>&,
                       const Plane<double>&, const std::array<double*, 2>&);
template void convolve(const PlacedInstruction<float>&, const PlacedInstruction<float>&, Index,
                       const std::array<float*, 2>&);
template void convolve(const PlacedInstruction<double>&, const PlacedInstruction<double>&, Index,
                       const std::array<double*, 2>&);
template void convolve_locally(const TileWork<float>&, NodeId, const PlacedInstruction<float>&, Index,
                               const Plane<float>&);
template void convolve_locally(const TileWork<double>&, NodeId, const PlacedInstruction<double>&, Index,
                               const Plane<double>&);
template void convolve_around(const TileWork<float>&, NodeId, const PlacedInstruction<float>&, Index,
                              const Plane<float>&);
template void convolve_around(const TileWork<double>&, NodeId, const PlacedInstruction<double>&, Index,
                              const Plane<double>&);

}  // namespace widelimit
