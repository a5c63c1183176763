#include "kernel/backends/reference/naive_positions.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>

#include "kernel/backends/reference/naive_layers.hpp"

namespace widelimit::testing {
namespace {

using nlohmann::json;

/// As Python's slice.indices.
RealMatrix slice_of(Index size, const json& begin, const json& end, Index step) {
  const auto place = [&](const json& given, Index otherwise) {
    if (given.is_null()) return otherwise;
    const Index at = given.get<Index>() < 0 ? given.get<Index>() + size : given.get<Index>();
    return step > 0 ? std::clamp<Index>(at, 0, size) : std::clamp<Index>(at, -1, size - 1);
  };
  const Index first = place(begin, step > 0 ? 0 : size - 1), stop = place(end, step > 0 ? size : -1);
  std::vector<Index> picked;
  for (Index at = first; step > 0 ? at < stop : at > stop; at += step) picked.push_back(at);
  RealMatrix m = RealMatrix::Zero(std::ssize(picked), size);
  for (Index a = 0; a < m.rows(); ++a) m(a, picked[static_cast<std::size_t>(a)]) = 1;
  return m;
}

Real keys_cubic(Real x) {
  return x < 1 ? ((1.5L * x - 2.5L) * x) * x + 1 : ((-0.5L * x + 2.5L) * x - 4) * x + 2;
}

/// The kernel's argument is a ratio of integers, so that its zeros are exact.
RealMatrix resize_of(Index size, Index new_size, const std::string& method, bool antialias) {
  RealMatrix m = RealMatrix::Zero(new_size, size);
  if (method == "nearest") {
    for (Index a = 0; a < new_size; ++a) m(a, ((2 * a + 1) * size) / (2 * new_size)) = 1;
    return m;
  }
  const Index unit = 2 * (antialias ? std::max(size, new_size) : new_size);
  for (Index a = 0; a < new_size; ++a) {
    for (Index i = 0; i < size; ++i) {
      const Index distance = std::abs((2 * a + 1) * size - (2 * i + 1) * new_size);
      const Real x = static_cast<Real>(distance) / static_cast<Real>(unit);
      if (method == "linear" && distance < unit) m(a, i) = 1 - x;
      if (method == "cubic" && distance < 2 * unit && distance != unit) m(a, i) = keys_cubic(x);
    }
    m.row(a) /= m.row(a).sum();
  }
  return m;
}

RealMatrix matrix_of(const json& rows) {
  RealMatrix m(std::ssize(rows), std::ssize(rows[0]));
  for (Index a = 0; a < m.rows(); ++a)
    for (Index i = 0; i < m.cols(); ++i)
      m(a, i) = rows[static_cast<std::size_t>(a)][static_cast<std::size_t>(i)].get<double>();
  return m;
}

RealMatrix kronecker(const RealMatrix& left, const RealMatrix& right) {
  RealMatrix m(left.rows() * right.rows(), left.cols() * right.cols());
  for (Index a = 0; a < left.rows(); ++a)
    for (Index i = 0; i < left.cols(); ++i)
      m.block(a * right.rows(), i * right.cols(), right.rows(), right.cols()) = left(a, i) * right;
  return m;
}

RealMatrix along_axis(Index size, const json& layer, std::size_t axis) {
  const std::string kind = layer["layer"];
  if (kind == "positions_map") return matrix_of(layer["matrices"][axis]);
  if (kind == "image_resize") {
    const Index wanted = layer["size"][axis];
    return wanted == -1 ? RealMatrix(RealMatrix::Identity(size, size))
                        : resize_of(size, wanted, layer["method"], layer["antialias"]);
  }
  const auto field = [&](const char* name) { return layer.contains(name) ? layer[name][axis] : json(); };
  return slice_of(size, field("begin"), field("end"),
                  field("step").is_null() ? 1 : field("step").get<Index>());
}

/// A position is masked if all that it reads are.
NaiveMask mask_after_map(const RealMatrix& map, const NaiveMask& before) {
  NaiveMask counts;
  for (Index a = 0; a < map.rows(); ++a) {
    bool reads_one = false;
    for (Index i = 0; i < map.cols(); ++i)
      reads_one = reads_one || (map(a, i) != 0 && before[static_cast<std::size_t>(i)]);
    counts.push_back(reads_one);
  }
  return counts;
}

}  // namespace

PositionMap position_map(const Shape& shape, const json& layer) {
  if (layer["layer"] == "positions_map" && layer.contains("matrix")) {
    const RealMatrix matrix = matrix_of(layer["matrix"]);
    Shape after;
    if (layer.contains("shape"))
      for (const json& size : layer["shape"]) after.push_back(size);
    return {after.empty() ? Shape{matrix.rows()} : after, matrix};
  }
  PositionMap map{{}, RealMatrix::Identity(1, 1)};
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    RealMatrix m;
    if (layer["layer"] == "index") {
      const bool chosen = layer["axis"] == axis;
      const Index position = layer["position"];
      m = chosen ? RealMatrix(RealMatrix::Identity(shape[axis], shape[axis])
                                  .row(position < 0 ? position + shape[axis] : position))
                 : RealMatrix(RealMatrix::Identity(shape[axis], shape[axis]));
      if (!chosen) map.shape.push_back(shape[axis]);
    } else {
      m = along_axis(shape[axis], layer, axis);
      map.shape.push_back(m.rows());
    }
    map.matrix = kronecker(map.matrix, m);
  }
  return map;
}

NaiveState map_positions(const NaiveState& state, const json& layer) {
  const std::array<PositionMap, 2> maps{position_map(state.shapes[0], layer),
                                        position_map(state.shapes[1], layer)};
  NaiveState result = map_each(state, [&](const NaivePair& pair, const Side& l, const Side& r) -> NaivePair {
    const RealMatrix &left = maps[l.number].matrix, &right = maps[r.number].matrix;
    return {left * pair.k * right.transpose(), left * pair.t * right.transpose(), pair.same_input};
  });
  for (std::size_t side = 0; side < 2; ++side) {
    result.shapes[side] = maps[side].shape;
    result.masks[side] = mask_after_map(maps[side].matrix, state.masks[side]);
  }
  return result;
}

/// With `same` and `valid` padding, jax.lax.conv_transpose's border; `circular` is the transpose of a convolution.
Cover transposed_cover(const Shape& shape, const json& layer) {
  const std::string padding = layer["padding"];
  Cover cover;
  Shape window, stride, front;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const Index k = layer["filter"][i], s = layer["strides"][i];
    window.push_back(k);
    stride.push_back(s);
    const Index grown = shape[i] * s;
    cover.shape.push_back(padding == "valid" ? grown + std::max<Index>(k - s, 0) : grown);
    // How many of the first input's taps stand before the output begins.
    const Index before = std::max<Index>(k - s, 0);
    front.push_back(padding == "valid" ? 0 : before / 2);
  }
  for (Index b = 0; b < position_count(cover.shape); ++b) {
    const Position at = position_of(b, cover.shape);
    std::vector<Index> members;
    for (Index o = 0; o < position_count(window); ++o) {
      const Position offset = position_of(o, window);
      Index flat = 0;
      for (std::size_t i = 0; i < shape.size() && flat >= 0; ++i) {
        Index place = at[i] + front[i] - offset[i];
        if (padding == "circular") place = ((place % cover.shape[i]) + cover.shape[i]) % cover.shape[i];
        const bool reads = place >= 0 && place % stride[i] == 0 && place / stride[i] < shape[i];
        flat = reads ? flat * shape[i] + place / stride[i] : -1;
      }
      members.push_back(flat);
    }
    cover.members.push_back(std::move(members));
  }
  return cover;
}

NaiveState concatenated(const std::vector<NaiveState>& ends, std::size_t axis) {
  NaiveState result;
  result.adjacency = ends[0].adjacency;
  /// Of every branch, side and position of it: the position in the whole.
  std::array<std::vector<std::vector<Index>>, 2> places;
  for (std::size_t side = 0; side < 2; ++side) {
    result.shapes[side] = ends[0].shapes[side];
    result.shapes[side][axis] = 0;
    for (const NaiveState& end : ends) result.shapes[side][axis] += end.shapes[side][axis];
    result.masks[side].assign(static_cast<std::size_t>(position_count(result.shapes[side])), false);
    Index begin = 0;
    for (const NaiveState& end : ends) {
      places[side].emplace_back();
      for (Index a = 0; a < position_count(end.shapes[side]); ++a) {
        Position at = position_of(a, end.shapes[side]);
        at[axis] += begin;
        Index flat = 0;
        for (std::size_t i = 0; i < at.size(); ++i) flat = flat * result.shapes[side][i] + at[i];
        places[side].back().push_back(flat);
        result.masks[side][static_cast<std::size_t>(flat)] = end.masks[side][static_cast<std::size_t>(a)];
      }
      begin += end.shapes[side][axis];
    }
  }
  const auto blocks = [&](auto member, std::size_t left, std::size_t right) {
    const Index rows = position_count(result.shapes[left]), columns = position_count(result.shapes[right]);
    NaivePair whole{RealMatrix::Zero(rows, columns), RealMatrix::Zero(rows, columns), false};
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const NaivePair pair = merged(ends[i]).*member;
      whole.same_input = pair.same_input;
      for (Index a = 0; a < pair.k.rows(); ++a)
        for (Index b = 0; b < pair.k.cols(); ++b) {
          const Index at = places[left][i][static_cast<std::size_t>(a)],
                      to = places[right][i][static_cast<std::size_t>(b)];
          whole.k(at, to) = pair.k(a, b);
          whole.t(at, to) = pair.t(a, b);
        }
    }
    return whole;
  };
  result.groups = {{1, blocks(&NaiveGroup::left, 0, 0), blocks(&NaiveGroup::cross, 0, 1),
                    blocks(&NaiveGroup::right, 1, 1)}};
  return result;
}

}  // namespace widelimit::testing
