// Kept nodes of PlaneExecutor, and the poolings and readouts that planes end in.
#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "kernel/planes/plane_executor.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

bool is_readout(const Node& node) { return std::holds_alternative<ReadoutNode>(node.operation); }

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

/// Copies rows of a plane that was kept as such, which lie in one piece or in two, to a slot, with zeros
/// behind each. Whole vectors are written, so that what follows must be copied later.
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

/// Writes planes to the diagonals of a matrix: those that agree but along the last axis together, row by row,
/// because they share the cache lines of the matrix.
template <typename Scalar>
void assemble_matrix(const Index3& left, const Index3& right, const Offsets& offsets,
                     const StoreLayout& layout, const Scalar* planes, Scalar* target) {
  const StoreLayout matrix = StoreLayout::matrix(left, right);
  struct Source {
    const Scalar* next;
    Scalar* target;
    Index size;
  };
  std::vector<Source> sources;
  for (const Index x : offsets.axis[0])
    for (const Index y : offsets.axis[1]) {
      sources.clear();
      Index3 extent{}, step{};
      for (const Index z : offsets.axis[2]) {
        const Box box(left, right, {x, y, z});
        if (box.empty()) continue;
        const auto place = matrix.place(box);
        sources.push_back({planes + layout.place(box).start, target + place.start, box.extent[2]});
        extent = box.extent;
        step = place.step;
      }
      for_each_row(extent, [&](Index i, Index j) {
        for (Source& source : sources) {
          Scalar* to = source.target + i * step[0] + j * step[1];
          for (Index k = 0; k < source.size; ++k) to[k * step[2]] = source.next[k];
          source.next += source.size;
        }
      });
    }
}

}  // namespace

template <typename Scalar>
Plane<Scalar> PlaneExecutor<Scalar>::store(NodeId node, Index pair) {
  Scalar* nngp = stores_.data() + pair * geometry_.store_size + geometry_.store_offset[node];
  return {nngp, geometry_.keeps_ntk[node] ? nngp + padded(geometry_.layouts[node].size()) : nullptr};
}

template <typename Scalar>
void PlaneExecutor<Scalar>::begin_target(NodeId target) {
  const auto pairs = static_cast<Index>(tile_->pairs.size());
  if (is_readout(program_.graph.nodes[target])) {
    std::fill_n(sums_[target].begin(), pairs, Sum{});
    return;
  }
  if (is_pool(target))
    return pool_.begin(geometry_, program_.graph, target, pairs, store(target, 0), geometry_.store_size);
  // Entries of a matrix that nobody asks for must not be mistaken for results.
  const StoreLayout& layout = geometry_.layouts[target];
  if (!layout.is_matrix()) return;
  constexpr Scalar preset = std::numeric_limits<Scalar>::quiet_NaN();
  for (Index pair = 0; pair < pairs; ++pair)
    fill_plane(store(target, pair), static_cast<std::size_t>(layout.size()), preset, preset);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::put(NodeId target, const Placed& placed, const Stack& stack,
                                const Plane<Scalar>& source) {
  const Node& node = program_.graph.nodes[target];
  if (is_pool(target)) return pool_.add(stack.first_pair, stack.count, source);
  if (!is_readout(node)) return save(target, placed, stack, source);
  for (Index n = 0; n < stack.count; ++n)
    add_readout(target, placed, stack.first_pair + n, source + n * placed.layout.length);
}

template <typename Scalar>
void PlaneExecutor<Scalar>::load(NodeId node, const Placed& placed, Index first_pair, Index count,
                                 const Plane<Scalar>& target) {
  const Index length = placed.layout.length;
  Plane<Scalar> written = target;
  if (!geometry_.keeps_ntk[node]) written.ntk = nullptr;
  const StoreLayout& layout = geometry_.layouts[node];
  std::array<std::array<StoreLayout::PlanePlace, 2>, 2> places{};
  for (std::size_t y = 0; y < static_cast<std::size_t>(placed.axis[1].count); ++y)
    for (std::size_t z = 0; z < static_cast<std::size_t>(placed.axis[2].count); ++z)
      places[y][z] = layout.place(Box(placed.axis, {0, y, z}));
  const auto copy = [&](const Scalar* kept, Scalar* plane) {
    for (std::size_t y = 0; y < static_cast<std::size_t>(placed.axis[1].count); ++y) {
      if (!layout.is_matrix()) {
        copy_plane_rows(placed.axis, y, places[y], placed.layout, kept, plane);
        continue;
      }
      const Index row = placed.layout.at(0, placed.axis[1].start[y]);
      for (std::size_t z = 0; z < static_cast<std::size_t>(placed.axis[2].count); ++z)
        copy_rows(places[y][z], Box(placed.axis, {0, y, z}), placed.layout, kept,
                  plane + row + placed.axis[2].start[z]);
    }
  };
  for (Index n = 0; n < count; ++n) {
    const Plane<Scalar> kept = store(node, first_pair + n), plane = written + n * length;
    copy(kept.nngp, plane.nngp);
    if (plane.ntk != nullptr) copy(kept.ntk, plane.ntk);
  }
  clear_guards(placed.layout, count, written);
  if (with_ntk_ && written.ntk == nullptr) std::fill_n(target.ntk, count * length, Scalar{0});
}

template <typename Scalar>
void PlaneExecutor<Scalar>::save(NodeId node, const Placed& placed, const Stack& stack,
                                 const Plane<Scalar>& source) {
  placed.for_each_piece([&](const Box& box, Index begin) {
    const auto place = geometry_.layouts[node].place(box);
    for (Index n = 0; n < stack.count; ++n) {
      const Plane<Scalar> kept = store(node, stack.first_pair + n),
                          plane = source + (n * placed.layout.length + begin);
      keep_rows(place, box, placed.layout, plane.nngp, kept.nngp);
      if (kept.ntk != nullptr) keep_rows(place, box, placed.layout, plane.ntk, kept.ntk);
    }
  });
}

template <typename Scalar>
void PlaneExecutor<Scalar>::add_readout(NodeId node, const Placed& placed, Index pair,
                                        const Plane<Scalar>& source) {
  const ReadoutKind kind = std::get<ReadoutNode>(program_.graph.nodes[node].operation).kind;
  if (kind == ReadoutKind::flatten && !placed.is_diagonal) return;
  const auto size = static_cast<std::size_t>(placed.layout.length);
  Sum& sum = sums_[node][static_cast<std::size_t>(pair)];
  sum.nngp += numerics::linear_rows<Scalar>().sum(source.nngp, size);
  if (!with_ntk_) return;
  sum.ntk += numerics::linear_rows<Scalar>().sum(source.ntk, size);
}

template <typename Scalar>
typename PlaneExecutor<Scalar>::Entry PlaneExecutor<Scalar>::readout(NodeId node, Index pair) const {
  const NodeId input = program_.graph.nodes[node].inputs[0];
  const auto left = static_cast<double>(position_count(geometry_.shapes.left[input]));
  const auto right = static_cast<double>(position_count(geometry_.shapes.right[input]));
  double weight = 1;
  switch (std::get<ReadoutNode>(program_.graph.nodes[node].operation).kind) {
    case ReadoutKind::flatten:
      weight = 1 / left;
      break;
    case ReadoutKind::average:
      weight = 1 / (left * right);
      break;
    case ReadoutKind::sum:
      break;
  }
  const Sum& sum = sums_[node][static_cast<std::size_t>(pair)];
  return {static_cast<Scalar>(weight * sum.nngp), static_cast<Scalar>(weight * sum.ntk)};
}

/// A kept node's covariances as matrices: where they are, or put together from its planes.
template <typename Scalar>
typename PlaneExecutor<Scalar>::MatrixPair PlaneExecutor<Scalar>::input_matrices(NodeId node, Index pair) {
  const StoreLayout& layout = geometry_.layouts[node];
  const Plane<Scalar> kept = store(node, pair);
  if (layout.is_matrix()) return {kept.nngp, kept.ntk, matrices_.data()};
  const Index size = layout.left_positions() * layout.right_positions();
  const auto assemble = [&](const Scalar* planes, Scalar* target) {
    std::fill_n(target, size, std::numeric_limits<Scalar>::quiet_NaN());
    assemble_matrix(geometry_.left_sizes[node], geometry_.right_sizes[node], geometry_.demanded[node], layout,
                    planes, target);
  };
  Scalar* next = matrices_.data();
  MatrixPair result{next, nullptr, nullptr};
  assemble(kept.nngp, next);
  next += padded(size);
  if (with_ntk_) {
    result.ntk = next;
    assemble(kept.ntk, next);
    next += padded(size);
  }
  result.scratch = next;
  return result;
}

// What the other files of the class call.
template void PlaneExecutor<float>::begin_target(NodeId);
template void PlaneExecutor<float>::put(NodeId, const Placed&, const Stack&, const Plane<float>&);
template void PlaneExecutor<float>::load(NodeId, const Placed&, Index, Index, const Plane<float>&);
template Plane<float> PlaneExecutor<float>::store(NodeId, Index);
template PlaneExecutor<float>::MatrixPair PlaneExecutor<float>::input_matrices(NodeId, Index);
template PlaneExecutor<float>::Entry PlaneExecutor<float>::readout(NodeId, Index) const;
template void PlaneExecutor<double>::begin_target(NodeId);
template void PlaneExecutor<double>::put(NodeId, const Placed&, const Stack&, const Plane<double>&);
template void PlaneExecutor<double>::load(NodeId, const Placed&, Index, Index, const Plane<double>&);
template Plane<double> PlaneExecutor<double>::store(NodeId, Index);
template PlaneExecutor<double>::MatrixPair PlaneExecutor<double>::input_matrices(NodeId, Index);
template PlaneExecutor<double>::Entry PlaneExecutor<double>::readout(NodeId, Index) const;

}  // namespace widelimit
