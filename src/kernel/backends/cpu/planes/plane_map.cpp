#include "kernel/backends/cpu/planes/plane_map.hpp"

#include <algorithm>
#include <tuple>

#include "kernel/vector_padding.hpp"
#include "network/plane_mapping.hpp"

namespace widelimit {
namespace {

constexpr auto chunk = static_cast<Index>(numerics::column_chunk);

/// The length of a row of the planes before the map, gaps included.
Index mapped_row_size(const PairLayout& pair) {
  Index gap = 0;
  for (const ChainGeometry& chain : pair.geometry.chains) gap = std::max(gap, chain.guard[2]);
  return padded(pair.planes.row + gap);
}

/// The numbers of one kernel of one pair between the map's two steps: all rows of the mapped planes, each still as
/// long as before the map.
Index mapped_kernel_size(const PairLayout& pair, NodeId node) {
  return pair.stores.layouts[node].rows() * mapped_row_size(pair);
}

/// The terms of the map along each axis, for the two shapes of the pair.
std::array<AxisMapping, 3> axis_mappings(const PairLayout& pair, NodeId node) {
  const PlaneMapping& mapping = *plane_mapping(pair_stage_of(pair.node(node).operation));
  const NodeId input = pair.input_of(node);
  const auto left = mapping.sparse_axes(pair.geometry.shapes.left[input]),
             right = mapping.sparse_axes(pair.geometry.shapes.right[input]);
  return {AxisMapping(left[0], right[0]), AxisMapping(left[1], right[1]), AxisMapping(left[2], right[2])};
}

}  // namespace

Index mapped_row_sums(const PairLayout& pair, NodeId node, Index pairs) {
  return pairs * (pair.with_ntk() ? 2 : 1) * mapped_kernel_size(pair, node);
}

template <typename Scalar>
PlaneMap<Scalar>::PlaneMap(const PairLayout& pair, NodeId node, const Plane<Scalar>& mapped, Scalar* row_sums)
    : axes_{axis_mappings(pair, node)},
      left_{pair.geometry.left_sizes[node]},
      right_{pair.geometry.right_sizes[node]},
      layout_{pair.stores.layouts[node]},
      mapped_{mapped},
      next_mapped_{pair.stores.size},
      sums_{row_sums, mapped_row_size(pair), mapped_kernel_size(pair, node), pair.with_ntk() ? 2 : 1} {
  group_.begun.assign(static_cast<std::size_t>(layout_.rows()), 0);
}

template <typename Scalar>
void PlaneMap<Scalar>::begin_tile(Index pairs) {
  pairs_ = pairs;
  group_.is_open = false;
  std::fill(group_.begun.begin(), group_.begun.end(), std::uint8_t{0});
  for (Index number = 0; number < pairs; ++number)
    fill_plane(mapped_ + number * next_mapped_, static_cast<std::size_t>(layout_.size()), Scalar{0},
               Scalar{0});
}

/// The terms of all pieces along an axis, sorted by mapped offset and row, with positions counted in the plane. Terms
/// of one entry stay in the order of the pieces, which is that of execution, so that an entry adds up its terms in
/// one order whether or not planes are joined.
template <typename Scalar>
std::vector<AxisTerm> PlaneMap<Scalar>::terms(std::size_t axis, const AxisPieces& pieces) const {
  std::vector<AxisTerm> result;
  for (std::size_t piece = 0; piece < static_cast<std::size_t>(pieces.count); ++piece)
    for (AxisTerm term : axes_[axis].terms(pieces.offset[piece])) {
      // Mapped offsets that nobody demands have no room in the layout.
      if (!layout_.contains(axis, term.offset)) continue;
      // Rows count from the first one of the mapped plane, and positions from the beginning of this plane.
      term.row -= behind(axis, term.offset).origin;
      term.position += pieces.start[piece] - pieces.origin[piece];
      result.push_back(term);
    }
  std::stable_sort(result.begin(), result.end(), [](const AxisTerm& one, const AxisTerm& other) {
    return std::tie(one.offset, one.row) < std::tie(other.offset, other.row);
  });
  return result;
}

template <typename Scalar>
typename PlaneMap<Scalar>::Rows PlaneMap<Scalar>::make_rows(const std::array<AxisPieces, 3>& axis) const {
  Rows rows;
  const std::vector<AxisTerm> slabs = terms(0, axis[0]), lines = terms(1, axis[1]);
  // Terms of one mapped entry are neighbours, since terms are sorted.
  const auto end_of_entry = [](const std::vector<AxisTerm>& all, std::size_t begin) {
    std::size_t end = begin;
    while (end < all.size() && all[end].offset == all[begin].offset && all[end].row == all[begin].row) ++end;
    return end;
  };
  for (std::size_t x = 0, next_x = 0; x < slabs.size(); x = next_x) {
    next_x = end_of_entry(slabs, x);
    for (std::size_t y = 0, next_y = 0; y < lines.size(); y = next_y) {
      next_y = end_of_entry(lines, y);
      // A row behind the map is the sum over slabs and lines of rows before it, with the product of both weights.
      rows.targets.push_back(layout_.first_row({slabs[x].offset, lines[y].offset}) +
                             slabs[x].row * behind(1, lines[y].offset).extent + lines[y].row);
      for (std::size_t i = x; i < next_x; ++i)
        for (std::size_t j = y; j < next_y; ++j)
          rows.terms.push_back(
              {slabs[i].position, lines[j].position, static_cast<Scalar>(slabs[i].weight * lines[j].weight)});
      rows.begin.push_back(rows.terms.size());
    }
  }
  return rows;
}

template <typename Scalar>
const typename PlaneMap<Scalar>::Rows& PlaneMap<Scalar>::rows_of(const std::array<AxisPieces, 3>& axis) {
  // The second offset follows from the first one, since both complement each other.
  const RowKey key{axis[0].offset[0], axis[1].offset[0], axis[0].count, axis[1].count};
  const auto found = rows_.find(key);
  return found != rows_.end() ? found->second : rows_.emplace(key, make_rows(axis)).first->second;
}

template <typename Scalar>
std::vector<typename PlaneMap<Scalar>::Columns> PlaneMap<Scalar>::make_columns(
    const AxisPieces& pieces) const {
  std::vector<Columns> result;
  const std::vector<AxisTerm> all = terms(2, pieces);
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    Columns columns{.offset = all[begin].offset, .start = all[begin].row, .matrix = {}, .map = {}};
    Index first = all[begin].position, last = first;
    // Chunks of neighbouring columns that one vector instruction computes together. Each has a small dense matrix.
    for (end = begin;
         end < all.size() && all[end].offset == columns.offset && all[end].row < columns.start + chunk;
         ++end) {
      first = std::min(first, all[end].position);
      last = std::max(last, all[end].position);
    }
    // [position in the row before the map][column of the chunk], for the positions that the chunk reads.
    columns.matrix.assign(static_cast<std::size_t>((last + 1 - first) * chunk), Scalar{0});
    for (std::size_t i = begin; i < end; ++i)
      columns
          .matrix[static_cast<std::size_t>((all[i].position - first) * chunk + all[i].row - columns.start)] +=
          static_cast<Scalar>(all[i].weight);
    columns.map = {nullptr, first, last + 1, static_cast<std::size_t>(all[end - 1].row + 1 - columns.start)};
    result.push_back(std::move(columns));
  }
  // The pointers are set last, because vectors moved while the list grew.
  for (Columns& columns : result) columns.map.matrix = columns.matrix.data();
  return result;
}

template <typename Scalar>
void PlaneMap<Scalar>::place(const std::array<AxisPieces, 3>& axis, const PlaneLayout& layout) {
  if (!group_.is_open) {
    group_.columns = make_columns(axis[2]);
    group_.width = layout.extent[2];
  }
  group_.is_open = true;
  group_.layout = layout;
  group_.rows = &rows_of(axis);
  group_.adds.clear();
  // The first plane of a group overwrites a row, so that sums need not be cleared.
  for (const std::ptrdiff_t target : group_.rows->targets) {
    std::uint8_t& begun = group_.begun[static_cast<std::size_t>(target)];
    group_.adds.push_back(begun);
    begun = 1;
  }
}

template <typename Scalar>
void PlaneMap<Scalar>::add(Index first_pair, Index count, const Plane<Scalar>& planes) {
  const Rows& rows = *group_.rows;
  const numerics::RowTerms<Scalar> terms{rows.begin.data(), rows.terms.data(), rows.targets.data(),
                                         group_.adds.data(), rows.targets.size()};
  const PlaneLayout& layout = group_.layout;
  for (Index n = 0; n < count; ++n)
    for (Index kernel = 0; kernel < sums_.kernels; ++kernel)
      numerics::mapped_rows<Scalar>().combine(
          terms, (kernel == 0 ? planes.nngp : planes.ntk) + n * layout.length, layout.stride[0],
          layout.stride[1], static_cast<std::size_t>(group_.width), sums_.of(first_pair + n, kernel),
          sums_.row_size);
}

template <typename Scalar>
void PlaneMap<Scalar>::end_group() {
  if (!group_.is_open) return;
  group_.is_open = false;
  auto& begun = group_.begun;
  // Only rows that this group has added to hold sums. Neighbouring ones are mapped together.
  for (auto begin = std::find(begun.begin(), begun.end(), 1); begin != begun.end();
       begin = std::find(begin, begun.end(), 1)) {
    const auto end = std::find(begin, begun.end(), 0);
    std::fill(begin, end, std::uint8_t{0});
    map_rows(begin - begun.begin(), end - begin);
    begin = end;
  }
}

/// Maps neighbouring rows of all pairs along the last axis and adds them to the mapped planes. Planes were mapped
/// along the first two axes when they were added.
template <typename Scalar>
void PlaneMap<Scalar>::map_rows(Index first_row, Index rows) {
  for (Index pair = 0; pair < pairs_; ++pair)
    for (Index kernel = 0; kernel < sums_.kernels; ++kernel) {
      Scalar* mapped = (kernel == 0 ? mapped_.nngp : mapped_.ntk) + pair * next_mapped_;
      const Scalar* source = sums_.of(pair, kernel) + first_row * sums_.row_size;
      for (const Columns& columns : group_.columns)
        numerics::mapped_rows<Scalar>().map_columns(
            columns.map, source, sums_.row_size, static_cast<std::size_t>(rows),
            mapped + layout_.row_start(first_row, columns.offset) + columns.start,
            behind(2, columns.offset).extent);
    }
}

template class PlaneMap<float>;
template class PlaneMap<double>;

}  // namespace widelimit
