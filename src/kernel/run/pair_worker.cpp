#include "kernel/run/pair_worker.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernel/inputs/multiples.hpp"
#include "kernel/planes/vector_padding.hpp"
#include "kernel/run/source_values.hpp"
#include "numerics/gemm.hpp"
#include "numerics/rows/linear_rows.hpp"
#include "numerics/rows/precise_products.hpp"

namespace widelimit {
namespace {

/// Products of vectors with so few channels cost no more in double than what else is done for a pair. With them the
/// Gram matrix of a linear network has no errors in float except the rounding of its entries; sums in float would
/// make errors several times larger.
constexpr Index few_channels = 512;

/// Up to this many left inputs are multiplied one by one, because a matrix product in double first copies all right
/// inputs. Single new inputs with many kept ones are such tiles.
constexpr Index few_rows = 3;

/// Rows whose mirrored entries are written together. A mirrored row is a column of the result, so each write touches
/// another cache line; 16 entries of float fill one.
constexpr std::size_t mirrored_rows = 16;

/// Copies the entries of some rows of a tile that were computed to the places of the mirrored pairs.
template <typename Scalar, typename Result>
void mirror(std::span<const PointRow<Scalar>> rows, std::span<const Index> places,
            std::span<const Index> columns, Result* matrix, Index matrix_columns) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    Result* mirrored = matrix + columns[j] * matrix_columns;
    const Result* entry = matrix + columns[j];
    // Left input i is number rows[i].same on the right side, or -1 if it is not there. Right inputs up to that number
    // were not computed.
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (static_cast<Index>(j) > rows[i].same) mirrored[places[i]] = entry[places[i] * matrix_columns];
  }
}

/// Writes values, rounded, to the places of their columns in a row of the result. `neighbours`: columns that follow one
/// another.
template <typename Scalar, typename Result>
void scatter(const Scalar* values, std::span<const Index> columns, bool neighbours, Result* row) {
  const auto rounded = [](Scalar value) { return static_cast<Result>(value); };
  if (columns.empty()) return;
  if (neighbours) {
    // Without the columns' numbers this is a copy of vectors.
    std::transform(values, values + columns.size(), row + columns[0], rounded);
    return;
  }
  for (std::size_t j = 0; j < columns.size(); ++j) row[columns[j]] = rounded(values[j]);
}

/// Entries are checked after rounding to the result's type: a double may be finite and still exceed the range of
/// float.
template <typename Result, typename Scalar>
bool all_finite(const Scalar* values, Index count) {
  if constexpr (std::is_same_v<Scalar, Result>)
    return numerics::linear_rows<Scalar>().all_finite(values, static_cast<std::size_t>(count));
  else
    return std::all_of(values, values + count,
                       [](Scalar value) { return std::isfinite(static_cast<Result>(value)); });
}

}  // namespace

template <typename Scalar>
PairWorker<Scalar>::PairWorker(const GramPlan& plan, const TileSize& most, StopRequest stop)
    : plan_{plan},
      planes_(plan.program, plan.demand(Purpose::result), plan.vectors_only ? 0 : most.pairs(), stop),
      points_(plan.program, plan.any_layout(), plan.kernel, most.left, most.right, stop),
      most_{most} {
  const auto sources = static_cast<Index>(points_.source_nodes().size());
  if (plan.device != nullptr && plan.vectors_only) {
    device_vectors_.emplace(plan, stop);
    return;
  }
  if (plan.device != nullptr) device_.emplace(plan, stop);
  if (plan.vectors_only) {
    products_ = AlignedBuffer<Scalar>(sources * most.left * padded(most.right));
    deviations_ = AlignedBuffer<Scalar>(sources * padded(most.right));
  }
}

template <typename Scalar>
void PairWorker<Scalar>::start_timer() {
  for (StepTimer* timer : {&timer_, &planes_.timer(), &points_.timer()})
    timer->start(plan_.program.graph.nodes.size());
}

template <typename Scalar>
void PairWorker<Scalar>::add_seconds(std::vector<double>& seconds_per_node) {
  for (const StepTimer* timer : {&timer_, &planes_.timer(), &points_.timer()})
    timer->add_to(seconds_per_node);
}

template <typename Scalar>
template <typename Result>
bool PairWorker<Scalar>::run(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches,
                             const TilePlace& place, const GramTarget<Result>& target) {
  collect(left, right, batches);
  if (device_vectors_) return run_on_device(left, right, batches, place, target);
  if (plan_.vectors_only)
    multiply_inputs(batches == Batches::one && left.begin == right.begin);
  else if (device_)
    device_->run(tile_, *left.block->on_device(), *right.block->on_device());
  else
    planes_.run(tile_);
  // The points' stages pack the arrays of the right inputs once for all rows of the tile.
  points_.begin_tile(tile_.right);
  rows_.clear();
  mirrored_ = 0;
  for (Index i = left.begin; i < left.end; ++i) {
    const bool has_itself = batches == Batches::one && i >= right.begin && i < right.end;
    // Both ranges count in the order of the batch. In a tile on the diagonal a left input is therefore also one of
    // the right inputs.
    rows_.push_back({&(*left.block)[i], has_itself ? i - right.begin : -1, {}});
  }
  const auto lefts = static_cast<Index>(rows_.size());
  bool finite = true;
  for (Index begin = 0; begin < lefts; begin += points_.rows_at_once()) {
    const auto rows =
        std::span(rows_).subspan(static_cast<std::size_t>(begin),
                                 static_cast<std::size_t>(std::min(points_.rows_at_once(), lefts - begin)));
    const auto for_each_row = [&](const auto& body) {
      for (std::size_t r = 0; r < rows.size(); ++r)
        body(begin + static_cast<Index>(r), rows[r].same, static_cast<Index>(r) * points_.row_step());
    };
    for (std::size_t s = 0; s < points_.source_nodes().size(); ++s)
      timer_.time(points_.source_nodes()[s], [&] {
        for_each_row(
            [&](Index i, Index same, Index step) { fill_source(s, i, same, points_.source(s) + step); });
      });
    const Plane<Scalar> values = points_.run(rows);
    for_each_row([&](Index i, Index same, Index step) {
      const Index row = place.rows[static_cast<std::size_t>(i)];
      // A row begins at its diagonal entry; the entries before it are mirrored from rows above.
      if (!write(values + step, std::max<Index>(same, 0), row, place, target)) finite = false;
    });
    if (batches == Batches::one) mirror_rows(static_cast<std::size_t>(begin) + rows.size(), place, target);
  }
  return finite;
}

template <typename Scalar>
template <typename Result>
bool PairWorker<Scalar>::run_on_device(const StateRange<Scalar>& left, const StateRange<Scalar>& right,
                                       Batches batches, const TilePlace& place,
                                       const GramTarget<Result>& target) {
  const auto side = [](const StateRange<Scalar>& range) {
    const Index first = range.block->begin();
    return DeviceSide{*range.block->on_device(), range.begin - first, range.end - first};
  };
  const bool one_block = batches == Batches::one && left.block->on_device() == right.block->on_device();
  device_vectors_->run(side(left), side(right), one_block);
  rows_.clear();
  mirrored_ = 0;
  bool finite = true;
  for (Index i = left.begin; i < left.end; ++i) {
    const Index same = one_block && i >= right.begin && i < right.end ? i - right.begin : -1;
    rows_.push_back({&(*left.block)[i], same, {}});
    const Index row = i - left.begin;
    if (!write(device_vectors_->row(row), std::max<Index>(same, 0), place.rows[static_cast<std::size_t>(row)],
               place, target))
      finite = false;
    if (batches == Batches::one) mirror_rows(rows_.size(), place, target);
  }
  return finite;
}

template <typename Scalar>
template <typename Result>
bool PairWorker<Scalar>::run_diagonal(const StateRange<Scalar>& inputs, std::span<const Index> places,
                                      const GramTarget<Result>& column) {
  constexpr Index first_column = 0;
  const DeviceStates<Scalar>& states = *inputs.block->on_device();
  bool finite = true;
  const auto write_one = [&](Index i, const Plane<Scalar>& value) {
    const auto number = static_cast<std::size_t>(i - inputs.begin);
    const TilePlace place{places.subspan(number, 1), {&first_column, 1}};
    if (!write(value, 0, places[number], place, column)) finite = false;
  };
  if (device_vectors_) {
    // All pairs of a few inputs are computed together.
    constexpr Index together = 64;
    const Index block = inputs.block->begin();
    for (Index begin = inputs.begin; begin < inputs.end; begin += together) {
      const Index end = std::min(begin + together, inputs.end);
      const DeviceSide side{states, begin - block, end - block};
      device_vectors_->run(side, side, true);
      for (Index i = begin; i < end; ++i) write_one(i, device_vectors_->row(i - begin) + (i - begin));
    }
    return finite;
  }
  collect(inputs, inputs, Batches::one);
  tile_.pairs.clear();
  for (Index i = 0; i < inputs.end - inputs.begin; ++i) tile_.pairs.push_back({i, i, true});
  device_->run(tile_, states, states);
  for (Index i = inputs.begin; i < inputs.end; ++i)
    write_one(i, points_of_itself((*inputs.block)[i], i - inputs.begin));
  return finite;
}

template <typename Scalar>
Plane<Scalar> PairWorker<Scalar>::points_of_itself(const InputState<Scalar>& input, Index number) {
  tile_.left.assign(1, &input);
  tile_.right.assign(1, &input);
  pair_number_.assign(1, number);
  rows_.assign(1, {&input, 0, {}});
  points_.begin_tile(tile_.right);
  for (std::size_t s = 0; s < points_.source_nodes().size(); ++s) fill_source(s, 0, 0, points_.source(s));
  return points_.run(rows_);
}

/// Mirrors all finished rows that are not mirrored yet, as soon as there are enough of them or the tile ends.
template <typename Scalar>
template <typename Result>
void PairWorker<Scalar>::mirror_rows(std::size_t end, const TilePlace& place,
                                     const GramTarget<Result>& target) {
  if (end < tile_.left.size() && end - mirrored_ < mirrored_rows) return;
  const auto rows = std::span<const PointRow<Scalar>>(rows_).subspan(mirrored_, end - mirrored_);
  for (Result* matrix : {target.nngp, target.ntk})
    if (matrix != nullptr)
      mirror(rows, place.rows.subspan(mirrored_, rows.size()), place.columns, matrix, target.columns);
  mirrored_ = end;
}

/// Writes the values of one left input with the right inputs from `first` on to row `row` of the result.
template <typename Scalar>
template <typename Result>
bool PairWorker<Scalar>::write(const Plane<Scalar>& values, Index first, Index row, const TilePlace& place,
                               const GramTarget<Result>& target) const {
  const std::span<const Index> written = place.columns.subspan(static_cast<std::size_t>(first));
  // Vectors keep the order of the batch, so that those of a tile follow one another (OrderedInputs).
  const bool neighbours = plan_.vectors_only;
  const Index begin = row * target.columns;
  if (target.nngp != nullptr) scatter(values.nngp + first, written, neighbours, target.nngp + begin);
  if (target.ntk != nullptr) scatter(values.ntk + first, written, neighbours, target.ntk + begin);
  // The check follows at once, while the values are in the cache. A kernel that is not wanted may overflow.
  const auto is_finite = [&](const Result* wanted, const Scalar* row_values) {
    return wanted == nullptr || all_finite<Result>(row_values + first, static_cast<Index>(written.size()));
  };
  return is_finite(target.nngp, values.nngp) && is_finite(target.ntk, values.ntk);
}

template <typename Scalar>
void PairWorker<Scalar>::collect(const StateRange<Scalar>& left, const StateRange<Scalar>& right,
                                 Batches batches) {
  tile_.left.clear();
  tile_.right.clear();
  tile_.pairs.clear();
  for (Index i = left.begin; i < left.end; ++i) tile_.left.push_back(&(*left.block)[i]);
  for (Index j = right.begin; j < right.end; ++j) tile_.right.push_back(&(*right.block)[j]);
  if (plan_.vectors_only) return;
  pair_number_.assign(tile_.left.size() * tile_.right.size(), -1);
  for_each_pair(left.end - left.begin, columns(), [&](Index i, Index j) {
    const Index first = left.begin + i, second = right.begin + j;
    const bool mirrored = batches == Batches::one && second < first;
    if (mirrored) return;
    pair_number_[static_cast<std::size_t>(i * columns() + j)] = static_cast<Index>(tile_.pairs.size());
    tile_.pairs.push_back({i, j, batches == Batches::one && first == second});
  });
}

/// Multiplies the inputs of a whole tile. The grid of tiles is fixed, so each entry always comes from the same matrix
/// product. A tile on the diagonal leaves out a quarter of its products, lower left, which is mirrored.
template <typename Scalar>
void PairWorker<Scalar>::multiply_inputs(bool symmetric) {
  const auto lefts = static_cast<Index>(tile_.left.size());
  // The second half begins on a multiple of the vector length, so that its part of each row of products is aligned.
  const Index half = padded(lefts / 2);
  for (std::size_t s = 0; s < points_.source_nodes().size(); ++s) {
    const NodeId node = points_.source_nodes()[s];
    if (!is_input(plan_, node)) continue;
    timer_.time(node, [&] {
      for (Index j = 0; j < columns(); ++j)
        deviations(s)[j] = std::sqrt(tile_.right[static_cast<std::size_t>(j)]->extra(node)[0]);
      if (!symmetric || half >= lefts) return multiply_inputs(s, 0, lefts, 0);
      multiply_inputs(s, 0, half, 0);
      multiply_inputs(s, half, lefts - half, half);
    });
  }
}

/// Multiplies left inputs [first_left, first_left + left_count) with all right inputs from first_right on. States are
/// consecutive in memory and of equal size (equalise_sizes() in gram_plan.cpp), so that their vectors are the rows of
/// a matrix with this leading dimension.
template <typename Scalar>
void PairWorker<Scalar>::multiply_inputs(std::size_t source, Index first_left, Index left_count,
                                         Index first_right) {
  const NodeId node = points_.source_nodes()[source];
  const Index channels = vector_channels(plan_, node), leading = plan_.any_layout().size;
  const Scalar *left = tile_.left[static_cast<std::size_t>(first_left)]->array(node, 0),
               *right = tile_.right[static_cast<std::size_t>(first_right)]->array(node, 0);
  if constexpr (std::is_same_v<Scalar, float>) {
    if (channels <= few_channels && left_count <= few_rows) {
      for (Index i = 0; i < left_count; ++i)
        numerics::precise_products<Scalar>().multiply_rows(
            left + i * leading, right, static_cast<std::size_t>(leading),
            static_cast<std::size_t>(columns() - first_right), static_cast<std::size_t>(channels),
            1 / static_cast<double>(channels), products(source, first_left + i) + first_right);
      return;
    }
    if (channels <= few_channels)
      return numerics::product_in_double(left_count, columns() - first_right, channels,
                                         1 / static_cast<double>(channels), {left, leading}, {right, leading},
                                         products(source, first_left) + first_right, padded(most_.right));
  }
  numerics::gemm(numerics::Transpose::no, numerics::Transpose::yes, left_count, columns() - first_right,
                 channels, Scalar{1} / static_cast<Scalar>(channels), {left, leading}, {right, leading},
                 Scalar{0}, products(source, first_left) + first_right, padded(most_.right));
}

/// Fills the values with which a row of pairs begins: readouts on features, products of vectors, or readouts of the
/// planes that the tile has passed through. Entries of mirrored pairs may stay as they were; nothing reads them.
template <typename Scalar>
void PairWorker<Scalar>::fill_source(std::size_t number, Index row, Index same, const Plane<Scalar>& source) {
  const NodeId node = points_.source_nodes()[number];
  const InputState<Scalar>& left = *tile_.left[static_cast<std::size_t>(row)];
  if (feature_node(plan_, node) != nullptr) {
    const auto first = static_cast<std::size_t>(std::max<Index>(same, 0));
    feature_values<Scalar>(plan_, node, left, std::span(tile_.right).subspan(first),
                           [&](std::size_t j, const FeatureStage::Values& values) {
                             source.nngp[first + j] = static_cast<Scalar>(values.nngp);
                             if (source.ntk != nullptr)
                               source.ntk[first + j] = static_cast<Scalar>(values.ntk);
                           });
    return;
  }
  // Inputs have no parameters before them, so their NTK is 0 (docs/theory/kernel-recursion.md, section 1).
  if (source.ntk != nullptr && is_input(plan_, node)) std::fill_n(source.ntk, columns(), Scalar{0});
  if (plan_.vectors_only) {
    const Index first = std::max<Index>(same, 0);
    std::copy_n(products(number, row) + first, columns() - first, source.nngp + first);
    // The diagonal takes the variance that the state recorded, so that the correlation of an input with itself is
    // exactly 1.
    if (same >= 0) source.nngp[same] = left.extra(node)[0];
    return take_multiples(number, row, same, source.nngp);
  }
  for (Index j = 0; j < columns(); ++j) {
    const Index pair = pair_number_[static_cast<std::size_t>(row * columns() + j)];
    if (pair < 0) continue;
    if (is_input(plan_, node)) {
      source.nngp[j] = take_product(node, row, j);
    } else if (device_) {
      const auto& [nngp, ntk] = device_->readout(node, pair);
      source.nngp[j] = static_cast<Scalar>(nngp);
      if (source.ntk != nullptr) source.ntk[j] = static_cast<Scalar>(ntk);
    } else {
      const auto [nngp, ntk] = planes_.readout(node, pair);
      source.nngp[j] = nngp;
      if (source.ntk != nullptr) source.ntk[j] = ntk;
    }
  }
}

/// Takes the products again, one by one, of inputs that may be multiples of each other. A matrix product adds up in
/// another order than variances do, so that |c| could exceed or miss the root of pq by a rounding error, which costs
/// half the digits of the angle (docs/theory/accuracy.md, sections 1 and 2).
template <typename Scalar>
void PairWorker<Scalar>::take_multiples(std::size_t source, Index row, Index same, Scalar* values) {
  const NodeId node = points_.source_nodes()[source];
  const Index first = std::max<Index>(same, 0);
  const Scalar* bounds = deviations(source);
  const Scalar factor = std::sqrt(tile_.left[static_cast<std::size_t>(row)]->extra(node)[0]) *
                        least_correlation_of_multiples<Scalar>(vector_channels(plan_, node));
  const auto exceeds = [&](Index begin, Index count) {
    return numerics::precise_products<Scalar>().any_exceeds(values + begin, bounds + begin, factor,
                                                            static_cast<std::size_t>(count));
  };
  // Most rows have no such pair; one vectorised pass over the row finds this out.
  if (!exceeds(first, columns() - first)) return;
  for (Index j = first; j < columns(); ++j)
    if (j != same && exceeds(j, 1)) values[j] = take_product(node, row, j);
}

/// The product of a left and a right input. If one is a multiple of the other, the row takes note of the column,
/// since row stages treat such pairs as perfectly correlated.
template <typename Scalar>
Scalar PairWorker<Scalar>::take_product(NodeId node, Index row, Index column) {
  const auto left = static_cast<std::size_t>(row), right = static_cast<std::size_t>(column);
  const VectorProduct product =
      vector_product(vector_of(plan_, node, *tile_.left[left]), vector_of(plan_, node, *tile_.right[right]));
  if (product.are_multiples && column != rows_[left].same) rows_[left].multiples.push_back(column);
  return static_cast<Scalar>(product.mean);
}

template class PairWorker<float>;
template class PairWorker<double>;
template bool PairWorker<float>::run_diagonal(const StateRange<float>&, std::span<const Index>,
                                              const GramTarget<float>&);
template bool PairWorker<double>::run_diagonal(const StateRange<double>&, std::span<const Index>,
                                               const GramTarget<float>&);
template bool PairWorker<double>::run_diagonal(const StateRange<double>&, std::span<const Index>,
                                               const GramTarget<double>&);
template bool PairWorker<float>::run(const StateRange<float>&, const StateRange<float>&, Batches,
                                     const TilePlace&, const GramTarget<float>&);
template bool PairWorker<double>::run(const StateRange<double>&, const StateRange<double>&, Batches,
                                      const TilePlace&, const GramTarget<float>&);
template bool PairWorker<double>::run(const StateRange<double>&, const StateRange<double>&, Batches,
                                      const TilePlace&, const GramTarget<double>&);

}  // namespace widelimit
