#include "kernel/backends/cpu/pair_row_backend.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "kernel/backends/source_values.hpp"
#include "kernel/inputs/multiples.hpp"
#include "kernel/vector_padding.hpp"
#include "numerics/gemm.hpp"
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

}  // namespace

template <typename Scalar>
PairRowBackend<Scalar>::PairRowBackend(const GramPlan& plan, const TileSize& most,
                                       std::unique_ptr<TileReadouts<Scalar>> readouts, StopRequest stop)
    : plan_{plan},
      readouts_{std::move(readouts)},
      pair_rows_(plan.program, plan.any_layout(), plan.kernel, most.left, most.right, stop),
      most_{most} {
  if (!plan.vectors_only) return;
  const auto sources = static_cast<Index>(pair_rows_.source_nodes().size());
  products_ = AlignedBuffer<Scalar>(sources * most.left * padded(most.right));
  deviations_ = AlignedBuffer<Scalar>(sources * padded(most.right));
}

template <typename Scalar>
std::vector<StepTimer*> PairRowBackend<Scalar>::timers() {
  std::vector<StepTimer*> timers{&timer_, &pair_rows_.timer()};
  if (readouts_ != nullptr && readouts_->timer() != nullptr) timers.push_back(readouts_->timer());
  return timers;
}

template <typename Scalar>
void PairRowBackend<Scalar>::start_timer() {
  for (StepTimer* timer : timers()) timer->start(plan_.program.graph.nodes.size());
}

template <typename Scalar>
void PairRowBackend<Scalar>::add_seconds(std::vector<double>& seconds_per_node) {
  for (const StepTimer* timer : timers()) timer->add_to(seconds_per_node);
}

template <typename Scalar>
void PairRowBackend<Scalar>::begin(const StateRange<Scalar>& left, const StateRange<Scalar>& right,
                                   Batches batches) {
  collect(left, right, batches);
  if (plan_.vectors_only)
    multiply_inputs(batches == Batches::one && left.begin == right.begin);
  else
    readouts_->run(tile_, *left.block, *right.block);
  // The stages of rows of pairs pack the arrays of the right inputs once for all rows of the tile.
  pair_rows_.begin_tile(tile_.right);
  rows_.clear();
  for (Index i = left.begin; i < left.end; ++i)
    rows_.push_back({&(*left.block)[i], place_of_itself(i, right, batches), {}});
}

template <typename Scalar>
TileRows<Scalar> PairRowBackend<Scalar>::rows(Index first, Index end) {
  const auto rows =
      std::span(rows_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
  const Index step = pair_rows_.row_step();
  for (std::size_t s = 0; s < pair_rows_.source_nodes().size(); ++s)
    timer_.time(pair_rows_.source_nodes()[s], [&] {
      for (Index i = first; i < end; ++i)
        fill_source(s, i, rows_[static_cast<std::size_t>(i)].same, pair_rows_.source(s) + (i - first) * step);
    });
  return {pair_rows_.run(rows), step};
}

template <typename Scalar>
void PairRowBackend<Scalar>::diagonal(const StateRange<Scalar>& inputs,
                                      const typename TileBackend<Scalar>::Visit& visit) {
  if (inputs.size() == 1) {
    begin(inputs, inputs, Batches::one);
    return visit(inputs.begin, rows(0, 1).values);
  }
  collect(inputs, inputs, Batches::one);
  tile_.pairs.clear();
  for (Index i = 0; i < inputs.size(); ++i) tile_.pairs.push_back({i, i, true});
  readouts_->run(tile_, *inputs.block, *inputs.block);
  for (Index i = inputs.begin; i < inputs.end; ++i)
    visit(i, pair_row_of_itself((*inputs.block)[i], i - inputs.begin));
}

template <typename Scalar>
Plane<Scalar> PairRowBackend<Scalar>::pair_row_of_itself(const InputState<Scalar>& input, Index number) {
  tile_.left.assign(1, &input);
  tile_.right.assign(1, &input);
  pair_number_.assign(1, number);
  rows_.assign(1, {&input, 0, {}});
  pair_rows_.begin_tile(tile_.right);
  for (std::size_t s = 0; s < pair_rows_.source_nodes().size(); ++s)
    fill_source(s, 0, 0, pair_rows_.source(s));
  return pair_rows_.run(rows_);
}

template <typename Scalar>
void PairRowBackend<Scalar>::collect(const StateRange<Scalar>& left, const StateRange<Scalar>& right,
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
void PairRowBackend<Scalar>::multiply_inputs(bool symmetric) {
  const auto lefts = static_cast<Index>(tile_.left.size());
  // The second half begins on a multiple of the vector length, so that its part of each row of products is aligned.
  const Index half = padded(lefts / 2);
  for (std::size_t s = 0; s < pair_rows_.source_nodes().size(); ++s) {
    const NodeId node = pair_rows_.source_nodes()[s];
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
void PairRowBackend<Scalar>::multiply_inputs(std::size_t source, Index first_left, Index left_count,
                                             Index first_right) {
  const NodeId node = pair_rows_.source_nodes()[source];
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
void PairRowBackend<Scalar>::fill_source(std::size_t number, Index row, Index same,
                                         const Plane<Scalar>& source) {
  const NodeId node = pair_rows_.source_nodes()[number];
  const InputState<Scalar>& left = *tile_.left[static_cast<std::size_t>(row)];
  if (feature_stage(plan_, node) != nullptr) {
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
  const bool is_product = is_input(plan_, node);
  if (source.ntk != nullptr && is_product) std::fill_n(source.ntk, columns(), Scalar{0});
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
    if (is_product) {
      source.nngp[j] = take_product(node, row, j);
    } else {
      const auto [nngp, ntk] = readouts_->readout(node, pair);
      source.nngp[j] = static_cast<Scalar>(nngp);
      if (source.ntk != nullptr) source.ntk[j] = static_cast<Scalar>(ntk);
    }
  }
}

/// Takes the products again, one by one, of inputs that may be multiples of each other. A matrix product adds up in
/// another order than variances do, so that |c| could exceed or miss the root of pq by a rounding error, which costs
/// half the digits of the angle (docs/theory/accuracy.md, sections 1 and 2).
template <typename Scalar>
void PairRowBackend<Scalar>::take_multiples(std::size_t source, Index row, Index same, Scalar* values) {
  const NodeId node = pair_rows_.source_nodes()[source];
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
Scalar PairRowBackend<Scalar>::take_product(NodeId node, Index row, Index column) {
  const auto left = static_cast<std::size_t>(row), right = static_cast<std::size_t>(column);
  const VectorProduct product =
      vector_product(vector_of(plan_, node, *tile_.left[left]), vector_of(plan_, node, *tile_.right[right]));
  if (product.are_multiples && column != rows_[left].same) rows_[left].multiples.push_back(column);
  return static_cast<Scalar>(product.mean);
}

template class PairRowBackend<float>;
template class PairRowBackend<double>;

}  // namespace widelimit
