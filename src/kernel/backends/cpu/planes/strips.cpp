#include "kernel/backends/cpu/planes/strips.hpp"

#include <algorithm>

#include "numerics/rows/linear_rows.hpp"

namespace widelimit {

template <typename Scalar>
void Strips<Scalar>::take_room(Scalar*& next, Index numbers) {
  arrays_.reserve(static_cast<std::size_t>(states_.arrays));
  for (Index k = 0; k < states_.arrays; ++k, next += numbers) arrays_.push_back(next);
}

/// Cuts the rows of a slab. A row has one piece, or two with a gap between them.
template <typename Scalar>
void Strips<Scalar>::cut_rows(const AxisPieces& columns, const Scalar* source, Index source_step,
                              Index stride, Scalar* strip) const {
  const auto& rows = numerics::linear_rows<Scalar>();
  const auto count = static_cast<std::size_t>(states_.strip.slab_rows),
             target_step = static_cast<std::size_t>(stride);
  const auto block = [&](std::size_t piece) {
    const Index first =
        columns.origin[piece] + (states_.side == Side::right ? columns.offset[piece] : Index{0});
    return numerics::RowBlock<Scalar>{source + first, source_step,
                                      static_cast<std::size_t>(columns.extent[piece])};
  };
  const auto first = block(0);
  if (columns.count == 1) return rows.pack(first.first, first.step, count, first.size, strip, target_step);
  rows.pack_pieces(first, block(1), static_cast<std::size_t>(columns.start[1]), count, strip, target_step);
}

template <typename Scalar>
void Strips<Scalar>::cut(const PlacedPlane& plane) {
  const StripLayout& layout = states_.strip;
  const Index stride = plane.layout.stride[1], slab = layout.slab_rows * stride;
  for (Index k = 0; k < states_.arrays; ++k) {
    Scalar* strip = arrays_[static_cast<std::size_t>(k)];
    for (std::size_t input = 0; input < states_.inputs.size(); ++input) {
      const Scalar* first = strip;
      for (Index x = 0; x < layout.slabs; ++x, strip += slab)
        cut_rows(plane.axis[2], states_.row(input, k, x, 0), states_.layout(input).stride[1], stride, strip);
      strip = std::fill_n(strip, layout.gap_rows * stride, Scalar{0});
      if (layout.repeats) strip = std::copy_n(first, slab, strip);
    }
  }
  gap_at_ = layout.slab_rows;
}

template <typename Scalar>
void Strips<Scalar>::move_gap(const PlacedPlane& plane) {
  const StripLayout& layout = states_.strip;
  const Index stride = plane.layout.stride[1], gap = plane.axis[1].first_gap();
  if (!layout.moves_gap() || gap >= gap_at_) return;
  const Index strip = layout.rows() * stride;
  for (Scalar* array : arrays_)
    for (std::size_t i = 0; i < states_.inputs.size(); ++i, array += strip) {
      Scalar *from = array + gap * stride, *to = from + layout.gap_rows * stride;
      // The rows between the new and the old place of the guards move down. They are copied backward because both
      // ranges overlap.
      std::copy_backward(from, array + gap_at_ * stride, to + (gap_at_ - gap) * stride);
      std::fill(from, to, Scalar{0});
    }
  gap_at_ = gap;
}

template class Strips<float>;
template class Strips<double>;

}  // namespace widelimit
