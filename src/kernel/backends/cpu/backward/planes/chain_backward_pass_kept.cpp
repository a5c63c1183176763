// Layers of a chain that read whole kept nodes: circular convolutions and local ones.
#include <algorithm>

#include "kernel/backends/cpu/backward/planes/chain_backward_pass.hpp"
#include "kernel/backends/cpu/backward/planes/kept_windows.hpp"

namespace widelimit {

/// Circular convolution: K' = b + s sum K and T' = K' + s sum T, over entries that windows read from the kept node
/// before it.
template <typename Scalar>
void ChainBackwardPass<Scalar>::sum_around(std::size_t i) {
  const Affine& affine = *affine_[i];
  const Planes& to = tape_[i];
  const NodeId id = of_.node(i).inputs[0];
  const auto scale = static_cast<Scalar>(affine.scale);
  fill_plane(to.value, size(to), static_cast<Scalar>(affine.bias), Scalar{0});
  for_each_pair(to.plane, to.value, [&](Index n, const Plane<Scalar>& plane) {
    const KeptNode<Scalar>& from = kept(id, n);
    for_each_wrapped(affine, to.plane, of_.geometry.left_sizes[id], of_.geometry.right_sizes[id],
                     [&](std::size_t entry, std::size_t source) {
                       plane.nngp[entry] += scale * from.nngp[source];
                       if (of_.with_ntk) plane.ntk[entry] += scale * from.ntk[source];
                     });
  });
  if (of_.with_ntk) numerics::linear_rows<Scalar>().add(to.value.nngp, Scalar{1}, to.value.ntk, size(to));
}

/// The transpose of sum_around(): K-bar += s (K'-bar + T'-bar), T-bar += s T'-bar for every entry of a window.
template <typename Scalar>
void ChainBackwardPass<Scalar>::spread_around(std::size_t i) {
  const Affine& affine = *affine_[i];
  const Planes& to = tape_[i];
  const NodeId id = of_.node(i).inputs[0];
  const auto scale = static_cast<Scalar>(affine.scale);
  for_each_pair(to.plane, to.adjoint, [&](Index n, const Plane<Scalar>& plane) {
    KeptNode<Scalar>& from = kept(id, n);
    for_each_wrapped(affine, to.plane, of_.geometry.left_sizes[id], of_.geometry.right_sizes[id],
                     [&](std::size_t entry, std::size_t source) {
                       const Scalar ntk = of_.with_ntk ? plane.ntk[entry] : Scalar{0};
                       from.nngp_adjoint[source] += scale * (plane.nngp[entry] + ntk);
                       if (of_.with_ntk) from.ntk_adjoint[source] += scale * ntk;
                     });
  });
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::load_diagonal(std::size_t i, Index n, TapeEntry<Scalar>& diagonal) {
  const NodeId id = of_.node(i).inputs[0];
  const Index3 &left_size = of_.geometry.left_sizes[id], &right_size = of_.geometry.right_sizes[id];
  diagonal.plane = PlacedPlane::alone(affine_[i]->offset_of_diagonal(), left_size, right_size);
  diagonal.resize_for_plane(of_.with_ntk);
  diagonal.clear_adjoint();
  read_kept(kept(id, n), diagonal.plane, left_size, right_size, diagonal.value());
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::sum_locally(std::size_t i) {
  if (affine_[i]->kind == AffineKind::circular) return sum_around(i);
  const Planes& to = tape_[i];
  TapeEntry<Scalar> from;
  for_each_pair(to.plane, to.value, [&](Index n, const Plane<Scalar>& plane) {
    load_diagonal(i, n, from);
    const numerics::PlaneWindows windows =
        from.plane.empty() ? numerics::PlaneWindows{} : strided_windows(*affine_[i], from.plane, to.plane);
    convolve({*affine_[i], from.plane, to.plane, 1}, windows, from.value(), plane, scratch());
  });
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::spread_locally(std::size_t i) {
  if (affine_[i]->kind == AffineKind::circular) return spread_around(i);
  const Planes& to = tape_[i];
  const NodeId id = of_.node(i).inputs[0];
  TapeEntry<Scalar> from;
  for_each_pair(to.plane, to.adjoint, [&](Index n, const Plane<Scalar>& plane) {
    load_diagonal(i, n, from);
    if (from.plane.empty()) return;
    convolution_.propagate({*affine_[i], from.plane, to.plane, 1}, plane, from.adjoint(), scratch());
    add_to_kept(from.adjoint(), from.plane, of_.geometry.left_sizes[id], of_.geometry.right_sizes[id],
                kept(id, n));
  });
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::evaluate(std::size_t i, LocalWindows local) {
  const Planes& to = tape_[i];
  // Weights at different positions are independent, so both kernels vanish away from the diagonal.
  if (!to.plane.is_diagonal) return fill_plane(to.value, size(to), Scalar{0}, Scalar{0});
  // The stage of a local layer works in place and has no arrays of the inputs.
  sum_locally(i);
  if (local.stage) local.stage->apply({to.value.nngp, to.value.ntk, nullptr, nullptr, size(to)});
}

template <typename Scalar>
void ChainBackwardPass<Scalar>::propagate(std::size_t i, LocalWindows local) {
  const Planes& to = tape_[i];
  if (!to.plane.is_diagonal) return;
  if (local.stage) {
    sum_locally(i);
    // The stage has to write adjoints of variances somewhere, although nothing reads them.
    const Plane<Scalar> variances = tape_.scratch(3);
    Scalar* of_right = tape_.scratch(2).nngp;
    local.stage->apply_adjoint({to.value.nngp, to.value.ntk, nullptr, nullptr, nullptr, nullptr,
                                to.adjoint.nngp, to.adjoint.ntk, variances.nngp, of_right, size(to)});
  }
  spread_locally(i);
}

template void ChainBackwardPass<float>::sum_around(std::size_t);
template void ChainBackwardPass<double>::sum_around(std::size_t);
template void ChainBackwardPass<float>::spread_around(std::size_t);
template void ChainBackwardPass<double>::spread_around(std::size_t);
template void ChainBackwardPass<float>::evaluate(std::size_t, LocalWindows);
template void ChainBackwardPass<double>::evaluate(std::size_t, LocalWindows);
template void ChainBackwardPass<float>::propagate(std::size_t, LocalWindows);
template void ChainBackwardPass<double>::propagate(std::size_t, LocalWindows);

}  // namespace widelimit
