#include "kernel/backends/cpu/planes/pair_stores.hpp"

#include <algorithm>
#include <limits>

#include "kernel/backends/cpu/planes/plane_windows.hpp"
#include "kernel/vector_padding.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

/// Copies a piece of a plane from a matrix to a slot.
template <typename Scalar>
void copy_rows(const StoreLayout::PlanePlace& place, const Box& box, const PlaneLayout& layout,
               const Scalar* source, Scalar* plane) {
  for_each_row(box.extent, [&](Index x, Index y) {
    const Scalar* from = source + place.start + x * place.step[0] + y * place.step[1];
    Scalar* to = plane + layout.at(x, y);
    for (Index z = 0; z < box.extent[2]; ++z) to[z] = from[z * place.step[2]];
  });
}

/// Copies rows of a node that is stored as planes to a slot, with zeros after each row. A row may consist of two
/// pieces, of complementary offsets. Whole vectors are written, so rows that come later in the slot must be copied
/// later.
template <typename Scalar>
void copy_plane_rows(const std::array<AxisPieces, 3>& axis, std::size_t y,
                     const std::array<StoreLayout::PlanePlace, 2>& places, const PlaneLayout& layout,
                     const Scalar* source, Scalar* plane) {
  const auto& rows = numerics::linear_rows<Scalar>();
  const auto row_count = static_cast<std::size_t>(axis[1].extent[y]),
             stride = static_cast<std::size_t>(layout.stride[1]);
  const auto block = [&](std::size_t z) {
    return numerics::RowBlock<Scalar>{source + places[z].start, places[z].step[1],
                                      static_cast<std::size_t>(axis[2].extent[z])};
  };
  const bool has_two = axis[2].count == 2;
  auto first = block(0), second = block(has_two ? 1 : 0);
  for (Index x = 0; x < axis[0].extent[0]; ++x) {
    Scalar* target = plane + layout.at(x, axis[1].start[y]);
    if (!has_two)
      rows.pack(first.first, first.step, row_count, first.size, target, stride);
    else
      rows.pack_pieces(first, second, static_cast<std::size_t>(axis[2].start[1]), row_count, target, stride);
    first.first += places[0].step[0];
    second.first += places[1].step[0];
  }
}

/// Copies a piece of a plane from a slot to its place.
template <typename Scalar>
void keep_rows(const StoreLayout::PlanePlace& place, const Box& box, const PlaneLayout& layout,
               const Scalar* plane, Scalar* target) {
  for_each_row(box.extent, [&](Index x, Index y) {
    const Scalar* from = plane + layout.at(x, y);
    Scalar* to = target + place.start + x * place.step[0] + y * place.step[1];
    if (place.step[2] == 1)
      std::copy_n(from, box.extent[2], to);
    else
      for (Index z = 0; z < box.extent[2]; ++z) to[z * place.step[2]] = from[z];
  });
}

/// Writes planes to the diagonals of a matrix. Planes that differ only along the last axis are written together, block
/// by block. The rows of a block lie as many numbers apart as the matrix has columns, often a multiple of a page: the
/// first-level cache would not hold them together, so that small blocks are put together elsewhere and copied by rows.
template <typename Scalar>
void assemble_matrix(const Index3& left, const Index3& right, const Offsets& offsets,
                     const StoreLayout& layout, const Scalar* planes, Scalar* target) {
  constexpr Index largest_block = 64 * 64, block_line = 16;
  const StoreLayout matrix = StoreLayout::matrix(left, right);
  const Index columns = matrix.right_positions();
  const bool elsewhere = left[2] * right[2] <= largest_block;
  const Index block_columns = elsewhere ? right[2] : columns;
  // What no offset leads to stays as the matrix is preset.
  std::vector<Scalar> small(static_cast<std::size_t>(elsewhere ? left[2] * right[2] : 0),
                            std::numeric_limits<Scalar>::quiet_NaN());
  struct Source {
    const Scalar* next;
    Index first;  ///< In the block.
    Index size;
  };
  std::vector<Source> sources;
  for (const Index x : offsets.axis[0])
    for (const Index y : offsets.axis[1]) {
      sources.clear();
      Index3 extent{}, step{};
      Index corner = 0;
      for (const Index z : offsets.axis[2]) {
        const Box box(left, right, {x, y, z});
        if (box.empty()) continue;
        const auto place = matrix.place(box);
        const Index row = box.origin[2], column = row + z;
        sources.push_back({planes + layout.place(box).start, row * block_columns + column, box.extent[2]});
        corner = place.start - (row * columns + column);
        extent = box.extent;
        step = place.step;
      }
      for_each_row(extent, [&](Index i, Index j) {
        Scalar* place = target + corner + i * step[0] + j * step[1];
        Scalar* block = elsewhere ? small.data() : place;
        for (Source& source : sources) {
          // More planes are read at a time than the processor follows by itself.
          __builtin_prefetch(source.next + 2 * source.size + block_line);
          Scalar* to = block + source.first;
          for (Index k = 0; k < source.size; ++k) to[k * (block_columns + 1)] = source.next[k];
          source.next += source.size;
        }
        if (!elsewhere) return;
        for (Index row = 0; row < left[2]; ++row)
          std::copy_n(block + row * right[2], right[2], place + row * columns);
      });
    }
}

/// The places in the store of a plane's pieces, [piece along the second axis][piece along the last axis].
using PiecePlaces = std::array<std::array<StoreLayout::PlanePlace, 2>, 2>;

PiecePlaces piece_places(const PlacedPlane& placed, const StoreLayout& layout) {
  PiecePlaces places{};
  for (std::size_t y = 0; y < static_cast<std::size_t>(placed.axis[1].count); ++y)
    for (std::size_t z = 0; z < static_cast<std::size_t>(placed.axis[2].count); ++z)
      places[y][z] = layout.place(piece_box(placed.axis, {0, y, z}));
  return places;
}

/// Copies a plane of which some offsets are not stored, because their entries are zero (kept_offsets() in
/// store_places.cpp).
template <typename Scalar>
void copy_kept_pieces(const PlacedPlane& placed, const StoreLayout& layout, const Scalar* kept,
                      Scalar* plane) {
  std::fill_n(plane, placed.layout.length, Scalar{0});
  placed.for_each_piece([&](const Box& box, Index begin) {
    for (std::size_t k = 0; k < 3; ++k)
      if (!layout.contains(k, box.offset[k])) return;
    copy_rows(layout.place(box), box, placed.layout, kept, plane + begin);
  });
}

bool keeps_all_pieces(const PlacedPlane& placed, const StoreLayout& layout) {
  if (layout.is_matrix()) return true;
  for (std::size_t k = 0; k < 3; ++k)
    for (std::size_t piece = 0; piece < static_cast<std::size_t>(placed.axis[k].count); ++piece)
      if (!layout.contains(k, placed.axis[k].offset[piece])) return false;
  return true;
}

/// Copies all pieces of a plane to a slot.
template <typename Scalar>
void copy_pieces(const PlacedPlane& placed, const PiecePlaces& places, bool from_matrix, const Scalar* kept,
                 Scalar* plane) {
  for (std::size_t y = 0; y < static_cast<std::size_t>(placed.axis[1].count); ++y) {
    if (!from_matrix) {
      copy_plane_rows(placed.axis, y, places[y], placed.layout, kept, plane);
      continue;
    }
    const Index row = placed.layout.at(0, placed.axis[1].start[y]);
    for (std::size_t z = 0; z < static_cast<std::size_t>(placed.axis[2].count); ++z)
      copy_rows(places[y][z], piece_box(placed.axis, {0, y, z}), placed.layout, kept,
                plane + row + placed.axis[2].start[z]);
  }
}

}  // namespace

template <typename Scalar>
Plane<Scalar> PairStores<Scalar>::at(NodeId node, Index pair) const {
  Scalar* nngp = begin_ + pair * pair_.stores.size + pair_.stores.begin[node];
  return {nngp, pair_.stores.keeps_ntk[node] ? nngp + padded(layout(node).size()) : nullptr};
}

template <typename Scalar>
void PairStores<Scalar>::forget(NodeId node, Index pairs) const {
  constexpr Scalar preset = std::numeric_limits<Scalar>::quiet_NaN();
  if (!layout(node).is_matrix()) return;
  for (Index pair = 0; pair < pairs; ++pair)
    fill_plane(at(node, pair), static_cast<std::size_t>(layout(node).size()), preset, preset);
}

template <typename Scalar>
void PairStores<Scalar>::load(NodeId node, const PlacedPlane& placed, Index first_pair, Index count,
                              const Plane<Scalar>& target) const {
  if (placed.is_whole) return copy_matrix(node, first_pair, target);
  const Index length = placed.layout.length;
  Plane<Scalar> written = target;
  if (!pair_.stores.keeps_ntk[node]) written.ntk = nullptr;
  const bool keeps_all = keeps_all_pieces(placed, layout(node));
  const PiecePlaces places = keeps_all ? piece_places(placed, layout(node)) : PiecePlaces{};
  const bool from_matrix = layout(node).is_matrix();
  for (Index n = 0; n < count; ++n) {
    const Plane<Scalar> kept = at(node, first_pair + n), plane = written + n * length;
    const auto copy = [&](const Scalar* source, Scalar* to) {
      if (keeps_all)
        copy_pieces(placed, places, from_matrix, source, to);
      else
        copy_kept_pieces(placed, layout(node), source, to);
    };
    copy(kept.nngp, plane.nngp);
    if (plane.ntk != nullptr) copy(kept.ntk, plane.ntk);
  }
  clear_guards(placed.layout, count, written);
  // Row stages read whole vectors. What they read after the last plane must be numbers, whatever stood there.
  const Index size = count * length, rest = padded(size) - size;
  fill_plane(written + size, static_cast<std::size_t>(rest), Scalar{0}, Scalar{0});
  if (target.ntk != nullptr && written.ntk == nullptr) std::fill_n(target.ntk, size + rest, Scalar{0});
}

/// Copies a whole matrix, followed by zeros up to the end of the last vector.
template <typename Scalar>
void PairStores<Scalar>::copy_matrix(NodeId node, Index pair, const Plane<Scalar>& target) const {
  const Plane<Scalar> kept = at(node, pair);
  const Index size = layout(node).size();
  const auto copy = [&](const Scalar* from, Scalar* to) {
    if (from != nullptr) std::copy_n(from, size, to);
    std::fill(to + (from != nullptr ? size : 0), to + padded(size), Scalar{0});
  };
  copy(kept.nngp, target.nngp);
  if (target.ntk != nullptr) copy(kept.ntk, target.ntk);
}

template <typename Scalar>
void PairStores<Scalar>::save(NodeId node, const PlacedPlane& placed, Index first_pair, Index count,
                              const Plane<Scalar>& source) const {
  if (placed.is_whole)
    return copy_plane(source, static_cast<std::size_t>(layout(node).size()), at(node, first_pair));
  placed.for_each_piece([&](const Box& box, Index begin) {
    const auto place = layout(node).place(box);
    for (Index n = 0; n < count; ++n) {
      const Plane<Scalar> kept = at(node, first_pair + n),
                          plane = source + (n * placed.layout.length + begin);
      keep_rows(place, box, placed.layout, plane.nngp, kept.nngp);
      if (kept.ntk != nullptr) keep_rows(place, box, placed.layout, plane.ntk, kept.ntk);
    }
  });
}

template <typename Scalar>
PairMatrices<Scalar> PairStores<Scalar>::matrices(NodeId node, Index pair, Scalar* space) const {
  const Plane<Scalar> kept = at(node, pair);
  if (layout(node).is_matrix()) return {kept.nngp, kept.ntk, space};
  const Index size = layout(node).left_positions() * layout(node).right_positions();
  const auto assemble = [&](const Scalar* planes) {
    Scalar* target = space;
    const Index3 &left = pair_.geometry.left_sizes[node], &right = pair_.geometry.right_sizes[node];
    const Offsets& offsets = pair_.geometry.demanded[node];
    if (static_cast<double>(offsets.count()) < Offsets::count_all(left, right))
      std::fill_n(target, size, std::numeric_limits<Scalar>::quiet_NaN());
    assemble_matrix(left, right, offsets, layout(node), planes, target);
    space += padded(size);
    return target;
  };
  PairMatrices<Scalar> result{assemble(kept.nngp), nullptr, nullptr};
  if (pair_.with_ntk()) result.ntk = assemble(kept.ntk);
  result.scratch = space;
  return result;
}

template class PairStores<float>;
template class PairStores<double>;

}  // namespace widelimit
