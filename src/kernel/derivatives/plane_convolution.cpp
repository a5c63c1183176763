#include "kernel/derivatives/plane_convolution.hpp"

#include "kernel/derivatives/entrywise.hpp"
#include "kernel/planes/plane_windows.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

/// The rows of a plane of one piece without its guards.
template <typename Scalar>
void take_rows(const PlaneLayout& layout, const GuardedRow<Scalar>& plane, std::vector<Scalar>& dense) {
  dense.clear();
  for_each_row(layout.extent, [&](Index x, Index y) {
    const Scalar* row = plane.data() + layout.at(x, y);
    dense.insert(dense.end(), row, row + layout.extent[2]);
  });
}

/// Calls put(entry, number) for its entries.
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
void PlaneConvolution<Scalar>::shift(const Affine& affine, const PlaneLayout& layout,
                                     const Plane<Scalar>& source, double bias, const Plane<Scalar>& target) {
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
void PlaneConvolution<Scalar>::forth(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to) {
  if (affine.kind == Affine::Kind::single_position)
    return dense_plane(affine.scale, affine.bias, from.value(), from.size(), to.value());
  const auto scale = static_cast<Scalar>(affine.scale), bias = static_cast<Scalar>(affine.bias);
  if (from.plane.empty()) {
    to.nngp.fill(bias);
    return to.ntk.fill(affine.trained ? bias : Scalar{0});
  }
  if (affine.kind == Affine::Kind::shifted) {
    clear_guards(from.plane.layout, 1, from.value());
    return shift(affine, from.plane.layout, from.value(), affine.bias, to.value());
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
  if (to.ntk.empty()) return;
  sum(from.ntk, to.ntk);
  if (affine.trained) add_times(to.nngp, 1, to.ntk);
}

/// Forth, the second kernel is the sum of the first and of what windows see of it; so with the kernels exchanged and the
/// windows turned round the same function goes back.
template <typename Scalar>
void PlaneConvolution<Scalar>::shift_back(const Affine& affine, TapeEntry<Scalar>& from,
                                          TapeEntry<Scalar>& to) {
  Affine turned = affine;
  for (std::size_t k = 0; k < 3; ++k) turned.left_front[k] = affine.window.size[k] - 1 - affine.left_front[k];
  const Plane<Scalar> adjoint = to.adjoint();
  const bool with_ntk = adjoint.ntk != nullptr;
  clear_guards(to.plane.layout, 1, adjoint);
  for (GuardedRow<Scalar>& row : sums_) row.resize(to.size());
  if (!with_ntk) {
    shift(turned, to.plane.layout, {adjoint.nngp, nullptr}, 0, {sums_[0].data(), nullptr});
    return add_times(sums_[0], 1, from.nngp_adjoint);
  }
  shift(turned, to.plane.layout, {adjoint.ntk, adjoint.nngp}, 0, {sums_[0].data(), sums_[1].data()});
  add_times(sums_[0], 1, from.ntk_adjoint);
  add_times(sums_[1], 1, from.nngp_adjoint);
}

template <typename Scalar>
void PlaneConvolution<Scalar>::back(const Affine& affine, TapeEntry<Scalar>& from, TapeEntry<Scalar>& to) {
  if (from.plane.empty()) return;
  if (affine.kind == Affine::Kind::shifted || affine.kind == Affine::Kind::single_position)
    return shift_back(affine, from, to);
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
  if (to.ntk.empty()) return;
  if (affine.trained) spread(to.ntk_adjoint, from.nngp_adjoint);
  spread(to.ntk_adjoint, from.ntk_adjoint);
}

template class PlaneConvolution<float>;
template class PlaneConvolution<double>;

}  // namespace widelimit
