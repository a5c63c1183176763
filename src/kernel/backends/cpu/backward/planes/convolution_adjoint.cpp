#include "kernel/backends/cpu/backward/planes/convolution_adjoint.hpp"

#include "kernel/backends/cpu/planes/plane_windows.hpp"
#include "kernel/vector_padding.hpp"

namespace widelimit {
namespace {

/// Copies the rows of a plane of one piece, without its guards, one after the other.
template <typename Scalar>
void take_rows(const PlaneLayout& layout, const Scalar* plane, std::vector<Scalar>& dense) {
  dense.clear();
  for_each_row(layout.extent, [&](Index x, Index y) {
    const Scalar* row = plane + layout.at(x, y);
    dense.insert(dense.end(), row, row + layout.extent[2]);
  });
}

/// Calls put(entry of the plane, number) for all numbers of such rows.
template <typename Scalar, typename Put>
void put_rows(const PlaneLayout& layout, const std::vector<Scalar>& dense, Scalar* plane, const Put& put) {
  const Scalar* next = dense.data();
  for_each_row(layout.extent, [&](Index x, Index y) {
    Scalar* row = plane + layout.at(x, y);
    for (Index z = 0; z < layout.extent[2]; ++z) put(row[z], *next++);
  });
}

}  // namespace

/// The forward pass computes K' = s W K + b and T' = K' + s W T. The backward pass is the same function with the two
/// kernels exchanged, with W^T in place of W, and without the bias: T-bar = s W^T T'-bar and K-bar = T-bar + s W^T
/// K'-bar. For stride-1 windows W^T is a convolution whose windows are turned round.
template <typename Scalar>
void ConvolutionAdjoint<Scalar>::shift_adjoint(const ConvolvedPlanes& planes, const Plane<Scalar>& after,
                                               const Plane<Scalar>& before, const Scratch& scratch) {
  const Affine& affine = planes.affine;
  const PlaneLayout& layout = planes.to.layout;
  const auto exchanged = [](const Plane<Scalar>& plane) {
    return plane.ntk == nullptr ? plane : Plane<Scalar>{plane.ntk, plane.nngp};
  };
  if (affine.kind == AffineKind::single_position)
    return dense_plane(affine.scale, 0, exchanged(after),
                       static_cast<std::size_t>(planes.count * layout.length), exchanged(before));
  Index3 turned_front;
  for (std::size_t k = 0; k < 3; ++k) turned_front[k] = affine.window.size[k] - 1 - affine.left_front[k];
  // The turned windows read over the ends of rows, where only zeros may be.
  clear_guards(layout, planes.count, after);
  convolve_shifted(affine.window, turned_front, layout, planes.count, affine.scale, 0.0, exchanged(after),
                   exchanged(before), scratch);
}

/// Strided or unpadded windows: every adjoint after the convolution is added to all entries of its window. Planes are
/// copied without guards, so that windows that end at borders are cut to what is there.
template <typename Scalar>
void ConvolutionAdjoint<Scalar>::spread_adjoint(const ConvolvedPlanes& planes, const Plane<Scalar>& after,
                                                const Plane<Scalar>& before) {
  const auto& [affine, from, to, count] = planes;
  const auto windows = windows_between(affine.window, affine.left_front, from, to);
  const auto scale = static_cast<Scalar>(affine.scale);
  const auto spread = [&](const Scalar* adjoint, Scalar* target) {
    take_rows(to.layout, adjoint, dense_[0]);
    dense_[1].assign(static_cast<std::size_t>(product(from.layout.extent)), Scalar{0});
    windows_.spread(windows, dense_[0].data(), dense_[1].data());
    put_rows(from.layout, dense_[1], target, [&](Scalar& entry, Scalar value) { entry += scale * value; });
  };
  fill_plane(before, static_cast<std::size_t>(count * from.layout.length), Scalar{0}, Scalar{0});
  for (Index n = 0; n < count; ++n) {
    const Plane<Scalar> source = after + n * to.layout.length, target = before + n * from.layout.length;
    spread(source.nngp, target.nngp);
    if (source.ntk == nullptr) continue;
    // T' contains K' if weights are trained.
    if (affine.trained) spread(source.ntk, target.nngp);
    spread(source.ntk, target.ntk);
  }
}

template <typename Scalar>
void ConvolutionAdjoint<Scalar>::propagate(const ConvolvedPlanes& planes, const Plane<Scalar>& after,
                                           const Plane<Scalar>& before, const Scratch& scratch) {
  const AffineKind kind = planes.affine.kind;
  if (kind == AffineKind::shifted || kind == AffineKind::single_position)
    return shift_adjoint(planes, after, before, scratch);
  spread_adjoint(planes, after, before);
}

template class ConvolutionAdjoint<float>;
template class ConvolutionAdjoint<double>;

}  // namespace widelimit
