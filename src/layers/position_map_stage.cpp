#include "layers/position_map_stage.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "network/mask_rule.hpp"
#include "network/plane_mapping.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/rows/mapped_rows.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

// An input's state holds the number of axes. For each of them follow rows, columns, width and whether it is the
// identity, then the first column of every row and its weights.
constexpr Index header = 4;

bool is_identity(const AxisMap& map) {
  if (map.rows() != map.columns || map.width != 1) return false;
  for (Index a = 0; a < map.rows(); ++a)
    if (map.first[static_cast<std::size_t>(a)] != a || map.weights[static_cast<std::size_t>(a)] != 1)
      return false;
  return true;
}

/// An axis of a map, read from a state. Its numbers are exact in float too, since an axis has at most 2^20 positions.
template <typename Scalar>
class AxisView {
 public:
  explicit AxisView(const Scalar* state) : state_{state} {}

  [[nodiscard]] Index rows() const { return number(0); }
  [[nodiscard]] Index columns() const { return number(1); }
  [[nodiscard]] Index width() const { return number(2); }
  [[nodiscard]] bool is_identity() const { return number(3) != 0; }
  [[nodiscard]] Index first(Index row) const { return number(header + row); }
  [[nodiscard]] const Scalar* weights(Index row) const { return state_ + header + rows() + row * width(); }
  [[nodiscard]] const Scalar* next() const { return weights(rows()); }

 private:
  [[nodiscard]] Index number(Index place) const { return static_cast<Index>(state_[place]); }

  const Scalar* state_;
};

template <typename Scalar>
Scalar* write_axis(const AxisMap& map, Scalar* state) {
  for (const Index number : {map.rows(), map.columns, map.width, Index{is_identity(map)}})
    *state++ = static_cast<Scalar>(number);
  for (const Index first : map.first) *state++ = static_cast<Scalar>(first);
  for (const double weight : map.weights) *state++ = static_cast<Scalar>(weight);
  return state;
}

/// The entries of an axis map: rows of a sparse matrix for data whose numbers along the axis are whole rows apart,
/// and dense pieces of neighbouring columns for data whose numbers along the axis are next to each other.
template <typename Scalar>
class SparseMap {
 public:
  explicit SparseMap(const AxisView<Scalar>& axis) : columns_{axis.columns()} {
    for (Index a = 0; a < axis.rows(); ++a) {
      for (Index t = 0; t < axis.width(); ++t) {
        if (axis.weights(a)[t] == 0) continue;
        column_.push_back(axis.first(a) + t);
        weight_.push_back(axis.weights(a)[t]);
      }
      begin_.push_back(static_cast<Index>(column_.size()));
    }
  }

  /// target[o, a, :] = sum_i M_ai source[o, i, :] for o < outer, with rows of `inner` numbers.
  void apply(Index outer, Index inner, const Scalar* source, Scalar* target) const {
    const Index rows = static_cast<Index>(begin_.size()) - 1;
    if (inner == 1) return apply_along_rows(outer, source, target);
    for (Index o = 0; o < outer; ++o, source += columns_ * inner, target += rows * inner)
      numerics::linear_rows<Scalar>().sparse_product(
          {begin_.data(), column_.data(), weight_.data(), static_cast<std::size_t>(rows)}, source,
          static_cast<std::size_t>(inner), target);
  }

 private:
  static constexpr auto chunk = static_cast<Index>(numerics::column_chunk);

  // With inner == 1 the numbers along the axis are neighbours, and a row of the map reads single numbers. Chunks of
  // neighbouring outputs are then products with a small dense matrix [columns read, chunk].
  void apply_along_rows(Index outer, const Scalar* source, Scalar* target) const {
    const Index rows = static_cast<Index>(begin_.size()) - 1;
    std::fill_n(target, outer * rows, Scalar{0});
    std::vector<Scalar> matrix;
    for (Index first_row = 0; first_row < rows; first_row += chunk) {
      const Index end_row = std::min(rows, first_row + chunk);
      const auto begin = column_.begin() + begin_[static_cast<std::size_t>(first_row)],
                 end = column_.begin() + begin_[static_cast<std::size_t>(end_row)];
      if (begin == end) continue;
      const auto [least, most] = std::minmax_element(begin, end);
      const Index first = *least, last = *most;
      matrix.assign(static_cast<std::size_t>((last + 1 - first) * chunk), Scalar{0});
      for (Index a = first_row; a < end_row; ++a)
        for (Index i = begin_[static_cast<std::size_t>(a)]; i < begin_[static_cast<std::size_t>(a) + 1]; ++i)
          matrix[static_cast<std::size_t>((column_[static_cast<std::size_t>(i)] - first) * chunk + a -
                                          first_row)] = weight_[static_cast<std::size_t>(i)];
      numerics::mapped_rows<Scalar>().map_columns(
          {matrix.data(), first, last + 1, static_cast<std::size_t>(end_row - first_row)}, source, columns_,
          static_cast<std::size_t>(outer), target + first_row, rows);
    }
  }

  Index columns_;
  std::vector<Index> begin_{0};
  std::vector<Index> column_;
  std::vector<Scalar> weight_;
};

/// The transpose of SparseMap::apply(): target[o, i, :] = sum_a M_ai source[o, a, :].
template <typename Scalar>
void map_axis_back(const AxisView<Scalar>& axis, Index outer, Index inner, const Scalar* source,
                   Scalar* target) {
  const Index rows = axis.rows(), columns = axis.columns(), width = axis.width();
  std::fill_n(target, outer * columns * inner, Scalar{0});
  for (Index o = 0; o < outer; ++o)
    for (Index a = 0; a < rows; ++a, source += inner) {
      const Scalar* weights = axis.weights(a);
      Scalar* to = target + (o * columns + axis.first(a)) * inner;
      for (Index t = 0; t < width; ++t, to += inner)
        for (Index i = 0; i < inner; ++i) to[i] += weights[t] * source[i];
    }
}

template <typename Scalar>
void append_axes(const Scalar* state, std::vector<AxisView<Scalar>>& axes) {
  const auto count = static_cast<Index>(*state++);
  for (Index i = 0; i < count; ++i) {
    axes.emplace_back(state);
    state = axes.back().next();
  }
}

/// The size of the largest array that occurs when these axes are mapped one after another.
template <typename Axes, typename Columns>
Index largest_array(const Axes& axes, const Columns& columns_of) {
  Index size = 1;
  for (const auto& axis : axes) size *= columns_of(axis);
  Index largest = size;
  for (const auto& axis : axes) {
    size = size / columns_of(axis) * axis.rows();
    largest = std::max(largest, size);
  }
  return largest;
}

/// The size of the largest array of a backward pass, which goes from rows to columns.
template <typename Scalar>
Index largest_array_back(const std::vector<AxisView<Scalar>>& axes) {
  Index size = 1;
  for (const auto& axis : axes) size *= axis.rows();
  Index largest = size;
  for (const auto& axis : axes) {
    size = size / axis.rows() * axis.columns();
    largest = std::max(largest, size);
  }
  return largest;
}

/// Maps the axes of `source`, whose sizes are their columns, one after another into `target`. `scratch` has room for
/// two arrays of `room` numbers, which take turns.
template <typename Scalar>
void map_axes(const std::vector<AxisView<Scalar>>& axes, const Scalar* source, Scalar* target,
              Scalar* scratch, Index room, const StopRequest& stop) {
  Index outer = 1, inner = 1;
  std::size_t last = axes.size();
  for (std::size_t k = 0; k < axes.size(); ++k) {
    inner *= axes[k].columns();
    if (!axes[k].is_identity()) last = k;
  }
  if (last == axes.size()) std::copy(source, source + inner, target);
  Scalar *mapped = scratch, *next = scratch + room;
  for (std::size_t k = 0; k < axes.size(); ++k) {
    inner /= axes[k].columns();
    if (!axes[k].is_identity()) {
      stop.check();
      // The last axis that changes anything writes to the target itself.
      if (k == last) mapped = target;
      SparseMap<Scalar>(axes[k]).apply(outer, inner, source, mapped);
      source = mapped;
      std::swap(mapped, next);
    }
    outer *= axes[k].rows();
  }
}

/// Adds the transpose of map_axes() to `target`.
template <typename Scalar>
void add_axes_back(const std::vector<AxisView<Scalar>>& axes, const Scalar* source, Scalar* target,
                   Index room, const StopRequest& stop) {
  std::vector<Scalar> scratch(2 * static_cast<std::size_t>(room));
  Scalar *mapped = scratch.data(), *next = mapped + room;
  Index outer = 1, inner = 1;
  for (const auto& axis : axes) inner *= axis.rows();
  for (const auto& axis : axes) {
    inner /= axis.rows();
    if (!axis.is_identity()) {
      stop.check();
      map_axis_back(axis, outer, inner, source, mapped);
      source = mapped;
      std::swap(mapped, next);
    }
    outer *= axis.columns();
  }
  for (Index i = 0; i < outer; ++i) target[i] += source[i];
}

/// The mask after a map along one axis, with `outer` positions before the axis and `inner` ones after it.
std::vector<std::uint8_t> mapped_counts(const AxisMap& map, Index outer, Index inner,
                                        const std::vector<std::uint8_t>& before) {
  std::vector<std::uint8_t> counts(static_cast<std::size_t>(outer * map.rows() * inner), 0);
  for (Index i = 0; i < outer; ++i)
    for (Index a = 0; a < map.rows(); ++a)
      for (Index t = 0; t < map.width; ++t) {
        if (map.weights[static_cast<std::size_t>(a * map.width + t)] == 0) continue;
        const Index read = i * map.columns + map.first[static_cast<std::size_t>(a)] + t;
        for (Index k = 0; k < inner; ++k)
          if (before[static_cast<std::size_t>(read * inner + k)] != 0)
            counts[static_cast<std::size_t>((i * map.rows() + a) * inner + k)] = 1;
      }
  return counts;
}

SparseAxis sparse(const AxisMap& map) {
  SparseAxis axis{.columns = map.columns};
  for (Index a = 0; a < map.rows(); ++a) {
    for (Index t = 0; t < map.width; ++t) {
      const double weight = map.weights[static_cast<std::size_t>(a * map.width + t)];
      if (weight == 0) continue;
      axis.column.push_back(map.first[static_cast<std::size_t>(a)] + t);
      axis.weight.push_back(weight);
    }
    axis.begin.push_back(axis.column.size());
  }
  return axis;
}

class PositionMapStage : public PairStageOf<PositionMapStage>, public MaskMapping, public PositionMatrices {
 public:
  explicit PositionMapStage(PositionMapPointer map) : map_{std::move(map)} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::anything,
            .leaves = StageRules::Leaves::as_it_was,
            .own_weights = false};
  }

  Shape output_shape(const Shape& input) const override { return map_->output_shape(input); }

  /// A position counts if at least one that it reads counts.
  PositionMask mapped(const PositionMask& before) const override {
    Index outer = 1, inner = position_count(before.shape);
    std::vector<std::uint8_t> counts = before.counts;
    for (const AxisMap& map : map_->axis_maps(before.shape)) {
      inner /= map.columns;
      counts = mapped_counts(map, outer, inner, counts);
      outer *= map.rows();
    }
    return {map_->output_shape(before.shape), std::move(counts)};
  }

  std::size_t state_size(const Shape& input) const override {
    Index size = 1;
    for (const AxisMap& map : map_->axis_maps(input)) size += header + map.rows() * (1 + map.width);
    return static_cast<std::size_t>(size);
  }

  std::size_t scratch_size(const Shape& left, const Shape& right) const override {
    std::vector<AxisMap> maps = map_->axis_maps(left);
    // K [d, d'] has the axes of the left input followed by those of the right one, which are mapped as if they were
    // one input's.
    const std::vector<AxisMap> right_maps = map_->axis_maps(right);
    maps.insert(maps.end(), right_maps.begin(), right_maps.end());
    return 2 * static_cast<std::size_t>(largest_array(maps, [](const AxisMap& map) { return map.columns; }));
  }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>& input, Scalar* state) const {
    const std::vector<AxisMap> maps = map_->axis_maps(input.shape);
    *state++ = static_cast<Scalar>(maps.size());
    for (const AxisMap& map : maps) state = write_axis(map, state);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    std::vector<AxisView<Scalar>> axes;
    append_axes(pair.left_state, axes);
    append_axes(pair.right_state, axes);
    const Index room = largest_array(axes, [](const AxisView<Scalar>& axis) { return axis.columns(); });
    map_axes(axes, pair.nngp.data(), result.nngp.data(), result.scratch, room, pair.stop);
    if (result.ntk.size() > 0)
      map_axes(axes, pair.ntk.data(), result.ntk.data(), result.scratch, room, pair.stop);
  }

  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    std::vector<AxisView<Scalar>> axes;
    append_axes(pair.left_state, axes);
    append_axes(pair.right_state, axes);
    const Index room = largest_array_back(axes);
    Eigen::Map<Matrix<Scalar>> nngp = adjoint.nngp, ntk = adjoint.ntk;
    add_axes_back(axes, adjoint.nngp_after.data(), nngp.data(), room, pair.stop);
    if (ntk.size() > 0) add_axes_back(axes, adjoint.ntk_after.data(), ntk.data(), room, pair.stop);
  }

  std::array<SparseAxis, 3> matrices(const Shape& input) const override {
    const std::vector<AxisMap> maps = map_->axis_maps(input);
    std::array<SparseAxis, 3> axes;
    for (std::size_t k = 0; k < 3; ++k) {
      const std::size_t leading = 3 - maps.size();
      axes[k] = sparse(k < leading ? identity_map(1) : maps[k - leading]);
    }
    return axes;
  }

 private:
  PositionMapPointer map_;
};

class PlaneMapStage final : public PositionMapStage, public PlaneMapping {
 public:
  using PositionMapStage::PositionMapStage;

  std::array<SparseAxis, 3> sparse_axes(const Shape& input) const override { return matrices(input); }
};

/// If every position is read by more rows than this on average, mapping the rows of a matrix, one side after the
/// other, costs less.
constexpr double many_readers = 4;

/// The rows to which a row of a plane is added are worked out once for all its pairs. For images of few long rows
/// that takes longer than adding.
bool has_enough_rows(const Shape& input) {
  constexpr Index many_rows = 8, short_row = 16;
  const Index rows = position_count(input) / input.back();
  return rows >= many_rows || (rows > 1 && input.back() <= short_row);
}

bool maps_planes_well(const PositionMap& map, const Shape& input) {
  if (input.size() < 2 || !has_enough_rows(input)) return false;
  const std::vector<AxisMap> maps = map.axis_maps(input);
  const Shape output = map.output_shape(input);
  if (maps.size() != input.size() || output.size() != input.size()) return false;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const auto entries = maps[i].weights.size() - static_cast<std::size_t>(std::count(
                                                      maps[i].weights.begin(), maps[i].weights.end(), 0.0));
    if (maps[i].columns != input[i] || output[i] != maps[i].rows()) return false;
    if (static_cast<double>(entries) > many_readers * static_cast<double>(input[i])) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const PairStage> position_map_stage(PositionMapPointer map, const Shape& input) {
  try {
    if (maps_planes_well(*map, input)) return std::make_shared<PlaneMapStage>(std::move(map));
  } catch (const ArgumentError&) {
    // The stage's own shape rule says where this happened.
  }
  return std::make_shared<PositionMapStage>(std::move(map));
}

}  // namespace widelimit::layers
