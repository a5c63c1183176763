#include "kernel/run/pair_worker.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernel/backends/gram_plan.hpp"
#include "kernel/run/make_tile_backend.hpp"
#include "numerics/rows/linear_rows.hpp"

namespace widelimit {
namespace {

/// Rows whose mirrored entries are written together. A mirrored row is a column of the result, so each write touches
/// another cache line; 16 entries of float fill one.
constexpr std::size_t mirrored_rows = 16;

/// Copies the entries of some rows of a tile that were computed to the places of the mirrored pairs.
template <typename Result>
void mirror(std::span<const Index> same, std::span<const Index> places, std::span<const Index> columns,
            Result* matrix, Index matrix_columns) {
  for (std::size_t j = 0; j < columns.size(); ++j) {
    Result* mirrored = matrix + columns[j] * matrix_columns;
    const Result* entry = matrix + columns[j];
    // Left input i is number same[i] on the right side, or -1 if it is not there. Right inputs up to that number
    // were not computed.
    for (std::size_t i = 0; i < same.size(); ++i)
      if (static_cast<Index>(j) > same[i]) mirrored[places[i]] = entry[places[i] * matrix_columns];
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
    : vectors_only_{plan.vectors_only}, backend_{make_tile_backend<Scalar>(plan, most, stop)} {}

template <typename Scalar>
template <typename Result>
bool PairWorker<Scalar>::run(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches,
                             const TilePlace& place, const GramTarget<Result>& target) {
  backend_->begin(left, right, batches);
  same_.clear();
  mirrored_ = 0;
  for (Index i = left.begin; i < left.end; ++i) same_.push_back(place_of_itself(i, right, batches));
  bool finite = true;
  const Index lefts = left.size(), at_once = backend_->rows_at_once();
  for (Index begin = 0, end = 0; begin < lefts; begin = end) {
    end = std::min(begin + at_once, lefts);
    const TileRows<Scalar> rows = backend_->rows(begin, end);
    for (Index i = begin; i < end; ++i) {
      const auto number = static_cast<std::size_t>(i);
      // A row begins at its diagonal entry; the entries before it are mirrored from rows above.
      if (!write(rows.values + (i - begin) * rows.step, std::max<Index>(same_[number], 0), place.rows[number],
                 place, target))
        finite = false;
    }
    if (batches == Batches::one) mirror_rows(static_cast<std::size_t>(end), place, target);
  }
  return finite;
}

template <typename Scalar>
template <typename Result>
bool PairWorker<Scalar>::run_diagonal(const StateRange<Scalar>& inputs, std::span<const Index> places,
                                      const GramTarget<Result>& column) {
  constexpr Index first_column = 0;
  bool finite = true;
  backend_->diagonal(inputs, [&](Index i, const Plane<Scalar>& value) {
    const auto number = static_cast<std::size_t>(i - inputs.begin);
    const TilePlace place{places.subspan(number, 1), {&first_column, 1}};
    if (!write(value, 0, places[number], place, column)) finite = false;
  });
  return finite;
}

/// Mirrors all finished rows that are not mirrored yet, as soon as there are enough of them or the tile ends.
template <typename Scalar>
template <typename Result>
void PairWorker<Scalar>::mirror_rows(std::size_t end, const TilePlace& place,
                                     const GramTarget<Result>& target) {
  if (end < same_.size() && end - mirrored_ < mirrored_rows) return;
  const auto rows = std::span<const Index>(same_).subspan(mirrored_, end - mirrored_);
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
  const bool neighbours = vectors_only_;
  const Index begin = row * target.columns;
  if (target.nngp != nullptr) scatter(values.nngp + first, written, neighbours, target.nngp + begin);
  if (target.ntk != nullptr) scatter(values.ntk + first, written, neighbours, target.ntk + begin);
  // The check follows at once, while the values are in the cache. A kernel that is not wanted may overflow.
  const auto is_finite = [&](const Result* wanted, const Scalar* row_values) {
    return wanted == nullptr || all_finite<Result>(row_values + first, static_cast<Index>(written.size()));
  };
  return is_finite(target.nngp, values.nngp) && is_finite(target.ntk, values.ntk);
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
