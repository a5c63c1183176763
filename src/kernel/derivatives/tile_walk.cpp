#include "kernel/derivatives/tile_walk.hpp"

#include <algorithm>

#include "numerics/gemm.hpp"

namespace widelimit {

template <typename Scalar>
TileWalk<Scalar>::TileWalk(const DerivativePlan& plan)
    : plan_{plan},
      points_(plan.program, plan.with_ntk),
      self_points_(plan.program, false),
      products_(plan.vector_inputs.size()),
      product_adjoints_(plan.vector_inputs.size()) {}

template <typename Scalar>
PairWalk<Scalar>& TileWalk<Scalar>::pair_walk(const Shape& left, const Shape& right) {
  auto& walk = pairs_[{left, right}];
  if (!walk)
    walk = std::make_unique<PairWalk<Scalar>>(plan_.program, plan_.pairs.at({left, right}), plan_.with_ntk);
  return *walk;
}

template <typename Scalar>
PairWalk<Scalar>& TileWalk<Scalar>::self_walk(const Shape& shape) {
  auto& walk = selves_[shape];
  if (!walk) walk = std::make_unique<PairWalk<Scalar>>(plan_.program, plan_.selves.at(shape), false);
  return *walk;
}

template <typename Scalar>
std::size_t TileWalk<Scalar>::vector_place(NodeId node) const {
  const auto found = std::find(plan_.vector_inputs.begin(), plan_.vector_inputs.end(), node);
  return static_cast<std::size_t>(found - plan_.vector_inputs.begin());
}

template <typename Scalar>
void TileWalk<Scalar>::self_forth(const PairSides<Scalar>& sides, PairWalk<Scalar>& walk,
                                  BatchRecords<Scalar>& records, Index i, const StopRequest& stop) {
  walk.forth(sides, stop);
  InputRecord<Scalar>* itself = sides.left;
  self_points_.begin_tile({&itself, 1});
  for (const std::size_t source : self_points_.sources()) {
    const NodeId node = self_points_.node_of(source);
    self_points_.entry(source).nngp[0] =
        plan_.program.points.instructions[source].loads
            ? walk.readout(node).nngp
            : records.vectors[vector_place(node)].variances[static_cast<std::size_t>(i)];
  }
  self_points_.forth(*sides.left, 0, true, stop);
}

template <typename Scalar>
void TileWalk<Scalar>::record(const Inputs<Scalar>& x, BatchRecords<Scalar>& records, Index i,
                              const StopRequest& stop) {
  InputRecord<Scalar>& record = records.inputs[static_cast<std::size_t>(i)];
  self_forth({&record, &record, nullptr, nullptr, true, true}, self_walk(x.shape(i)), records, i, stop);
}

template <typename Scalar>
void TileWalk<Scalar>::self_back(const TileBatch<Scalar>& batch, Index i, const StopRequest& stop) {
  const auto place = static_cast<std::size_t>(i);
  InputRecord<Scalar>& record = batch.records.inputs[place];
  RecordAdjoint<Scalar>& adjoint = batch.adjoints.inputs[place];
  const PairSides<Scalar> sides{&record, &record, &adjoint, &adjoint, true, true};
  PairWalk<Scalar>& walk = self_walk(batch.x.shape(i));
  self_forth(sides, walk, batch.records, i, stop);
  self_points_.begin_back();
  self_points_.back(record, adjoint, 0, true, stop);
  for (const std::size_t source : self_points_.sources()) {
    const NodeId node = self_points_.node_of(source);
    const Scalar of_source = self_points_.entry(source).nngp_adjoint[0];
    if (plan_.program.points.instructions[source].loads) {
      walk.readout_adjoint(node) = {of_source, 0};
      continue;
    }
    const std::size_t vector = vector_place(node);
    const auto& rows = batch.records.vectors[vector].rows;
    batch.adjoints.vectors[vector].row(i) += (2 * of_source / static_cast<Scalar>(rows.cols())) * rows.row(i);
  }
  walk.back(sides, stop);
}

template <typename Scalar>
void TileWalk<Scalar>::multiply_vectors(const TileBatch<Scalar>& left, const InputRange& rows,
                                        const TileBatch<Scalar>& right, const InputRange& columns,
                                        bool same) {
  for (std::size_t v = 0; v < plan_.vector_inputs.size(); ++v) {
    const Matrix<Scalar>&a = left.records.vectors[v].rows, &b = right.records.vectors[v].rows;
    products_[v].resize(rows.size(), columns.size());
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::yes, rows.size(), columns.size(), a.cols(),
                   Scalar{1} / static_cast<Scalar>(a.cols()), {a.row(rows.begin).data(), a.cols()},
                   {b.row(columns.begin).data(), b.cols()}, Scalar{0}, products_[v].data(), columns.size());
    for (Index i = std::max(rows.begin, columns.begin); same && i < std::min(rows.end, columns.end); ++i)
      products_[v](i - rows.begin, i - columns.begin) =
          left.records.vectors[v].variances[static_cast<std::size_t>(i)];
    product_adjoints_[v].setZero(rows.size(), columns.size());
  }
}

template <typename Scalar>
void TileWalk<Scalar>::multiply_vectors_back(const TileBatch<Scalar>& left, const InputRange& rows,
                                             const TileBatch<Scalar>& right, const InputRange& columns) {
  for (std::size_t v = 0; v < plan_.vector_inputs.size(); ++v) {
    const Matrix<Scalar>&a = left.records.vectors[v].rows, &b = right.records.vectors[v].rows;
    const Index channels = a.cols();
    const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
    const Scalar* adjoint = product_adjoints_[v].data();
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::no, rows.size(), channels, columns.size(),
                   scale, {adjoint, columns.size()}, {b.row(columns.begin).data(), channels}, Scalar{1},
                   left.adjoints.vectors[v].row(rows.begin).data(), channels);
    numerics::gemm(numerics::Transpose::yes, numerics::Transpose::no, columns.size(), channels, rows.size(),
                   scale, {adjoint, columns.size()}, {a.row(rows.begin).data(), channels}, Scalar{1},
                   right.adjoints.vectors[v].row(columns.begin).data(), channels);
  }
}

template <typename Scalar>
PairSides<Scalar> TileWalk<Scalar>::sides(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                          Index i, Index j, bool same) const {
  const auto row = static_cast<std::size_t>(i), column = static_cast<std::size_t>(j);
  return {&left.records.inputs[row],
          &right.records.inputs[column],
          &left.adjoints.inputs[row],
          &right.adjoints.inputs[column],
          same,
          false};
}

template <typename Scalar>
bool TileWalk<Scalar>::counts(std::size_t column) {
  const TapeEntry<Scalar>& result = points_.result();
  return result.nngp_adjoint[column] != 0 || (plan_.with_ntk && result.ntk_adjoint[column] != 0);
}

/// Products of vectors, and readouts of all pairs that count. Behind the positions nothing may read the values, though.
template <typename Scalar>
void TileWalk<Scalar>::read_sources(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                    const InputRange& columns, const Row& row, const StopRequest& stop) {
  bool reads_positions = false;
  for (const std::size_t source : points_.sources()) {
    TapeEntry<Scalar>& entry = points_.entry(source);
    entry.nngp.fill(0);
    entry.ntk.fill(0);
    if (plan_.program.points.instructions[source].loads) {
      reads_positions = true;
      continue;
    }
    const Matrix<Scalar>& products = products_[vector_place(points_.node_of(source))];
    std::copy_n(products.row(row.number).data(), columns.size(), entry.nngp.data());
  }
  if (!reads_positions || points_.is_linear()) return;
  for (Index j = columns.begin; j < columns.end; ++j) {
    const auto column = static_cast<std::size_t>(j - columns.begin);
    if (!counts(column)) continue;
    PairWalk<Scalar>& walk = pair_walk(left.x.shape(row.left), right.x.shape(j));
    walk.forth(sides(left, right, row.left, j, j - columns.begin == row.same), stop);
    for (const std::size_t source : points_.sources()) {
      if (!plan_.program.points.instructions[source].loads) continue;
      points_.entry(source).nngp[column] = walk.readout(points_.node_of(source)).nngp;
      if (plan_.with_ntk) points_.entry(source).ntk[column] = walk.readout(points_.node_of(source)).ntk;
    }
  }
}

template <typename Scalar>
void TileWalk<Scalar>::positions_back(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                      const InputRange& columns, const Row& row, const StopRequest& stop) {
  if (plan_.program.steps.empty()) return;
  for (Index j = columns.begin; j < columns.end; ++j) {
    const auto column = static_cast<std::size_t>(j - columns.begin);
    if (!counts(column)) continue;
    PairWalk<Scalar>& walk = pair_walk(left.x.shape(row.left), right.x.shape(j));
    for (const std::size_t source : points_.sources())
      if (plan_.program.points.instructions[source].loads) {
        const TapeEntry<Scalar>& entry = points_.entry(source);
        walk.readout_adjoint(points_.node_of(source)) = {
            entry.nngp_adjoint[column], plan_.with_ntk ? entry.ntk_adjoint[column] : Scalar{0}};
      }
    const PairSides<Scalar> pair = sides(left, right, row.left, j, j - columns.begin == row.same);
    if (walk.needs_forth()) walk.forth(pair, stop);
    walk.back(pair, stop);
  }
}

template <typename Scalar>
void TileWalk<Scalar>::tile(const TileBatch<Scalar>& left, const InputRange& rows,
                            const TileBatch<Scalar>& right, const InputRange& columns,
                            const TileCotangents<Scalar>& cotangents, bool same, const StopRequest& stop) {
  std::vector<InputRecord<Scalar>*> records;
  std::vector<RecordAdjoint<Scalar>*> adjoints;
  for (Index j = columns.begin; j < columns.end; ++j) {
    records.push_back(&right.records.inputs[static_cast<std::size_t>(j)]);
    adjoints.push_back(&right.adjoints.inputs[static_cast<std::size_t>(j)]);
  }
  multiply_vectors(left, rows, right, columns, same);
  points_.begin_tile(records);
  for (Index i = rows.begin; i < rows.end; ++i) {
    stop.check();
    const bool has_itself = same && i >= columns.begin && i < columns.end;
    const Row row{i, i - rows.begin, has_itself ? i - columns.begin : -1};
    points_.begin_back();
    TapeEntry<Scalar>& result = points_.result();
    const auto take = [&](const Matrix<Scalar>* matrix, GuardedRow<Scalar>& adjoint) {
      if (matrix != nullptr) std::copy_n(matrix->row(row.number).data(), columns.size(), adjoint.data());
    };
    take(cotangents.nngp, result.nngp_adjoint);
    take(cotangents.ntk, result.ntk_adjoint);
    const GuardedRow<Scalar> nngp_adjoint = result.nngp_adjoint, ntk_adjoint = result.ntk_adjoint;
    read_sources(left, right, columns, row, stop);
    InputRecord<Scalar>& record = left.records.inputs[static_cast<std::size_t>(i)];
    points_.forth(record, row.same, false, stop);
    points_.back(record, left.adjoints.inputs[static_cast<std::size_t>(i)], row.same, false, stop);
    for (const std::size_t source : points_.sources())
      if (!plan_.program.points.instructions[source].loads) {
        const TapeEntry<Scalar>& entry = points_.entry(source);
        std::copy(entry.nngp_adjoint.begin(), entry.nngp_adjoint.end(),
                  product_adjoints_[vector_place(points_.node_of(source))].row(row.number).data());
      }
    // Stages work in place: what pairs count is asked of the cotangents again.
    result.nngp_adjoint = nngp_adjoint;
    result.ntk_adjoint = ntk_adjoint;
    positions_back(left, right, columns, row, stop);
  }
  points_.end_tile(adjoints);
  multiply_vectors_back(left, rows, right, columns);
}

template class TileWalk<float>;
template class TileWalk<double>;

}  // namespace widelimit
