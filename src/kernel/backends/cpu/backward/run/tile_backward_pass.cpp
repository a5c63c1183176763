#include "kernel/backends/cpu/backward/run/tile_backward_pass.hpp"

#include <algorithm>

#include "numerics/gemm.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
PairBlock<Scalar> block_of_itself(const BlockInput<Scalar>& input) {
  return {.left = {input}, .right = {input}, .pairs = {{0, 0, true}}, .recording = true};
}

/// Ties are looked for in float only: double is what their derivatives are computed in.
template <typename Scalar>
const std::vector<bool>* counted(const std::vector<bool>& steep) {
  return sizeof(Scalar) == sizeof(float) ? &steep : nullptr;
}

/// The end of a side of a block that begins at `begin`: at most so many inputs, all of one shape.
template <typename Scalar>
Index end_of_side(const Inputs<Scalar>& x, Index begin, Index end, Index most) {
  Index next = begin + 1;
  while (next < end && next - begin < most && x.shape(next) == x.shape(begin)) ++next;
  return next;
}

}  // namespace

template <typename Scalar>
TileBackwardPass<Scalar>::TileBackwardPass(const BackwardPlan& plan)
    : plan_{plan},
      pair_rows_(plan.program, plan.with_ntk, counted<Scalar>(plan.steep)),
      // Pairs read no more than variances and states of an input, which do not depend on its NTK. An input with
      // itself therefore passes without it.
      self_pair_rows_(plan.program, false, counted<Scalar>(plan.steep_for_self)),
      products_(plan.vector_count),
      product_adjoints_(plan.vector_count) {}

template <typename Scalar>
PairBackwardPass<Scalar>& TileBackwardPass<Scalar>::pair_pass(const Shape& left, const Shape& right) {
  auto& pass = pairs_[{left, right}];
  if (!pass)
    pass = std::make_unique<PairBackwardPass<Scalar>>(
        plan_.program, plan_.pairs.at({left, right}),
        BackwardScope{plan_.with_ntk, plan_.with_scalars, counted<Scalar>(plan_.steep)});
  return *pass;
}

template <typename Scalar>
PairBackwardPass<Scalar>& TileBackwardPass<Scalar>::self_pass(const Shape& shape) {
  auto& pass = selves_[shape];
  if (!pass)
    pass = std::make_unique<PairBackwardPass<Scalar>>(
        plan_.program, plan_.selves.at(shape),
        BackwardScope{false, plan_.with_scalars, counted<Scalar>(plan_.steep_for_self)});
  return *pass;
}

template <typename Scalar>
void TileBackwardPass<Scalar>::sum_scalars(ScalarAdjoints* scalars) {
  scalars_ = scalars;
  pair_rows_.sum_scalars(scalars);
  self_pair_rows_.sum_scalars(scalars);
}

template <typename Scalar>
void TileBackwardPass<Scalar>::self_forward(const PairBlock<Scalar>& itself, PairBackwardPass<Scalar>& pass,
                                            BatchRecords<Scalar>& records, Index i, const StopRequest& stop) {
  pass.forward(itself, PairBackwardPass<Scalar>::Readouts::wanted, stop);
  InputRecord<Scalar>* record = itself.left[0].record;
  self_pair_rows_.begin_tile({&record, 1});
  for (const std::size_t source : self_pair_rows_.sources()) {
    const NodeId node = self_pair_rows_.node_of(source);
    // A source is a readout of the positions or the variance of a vector.
    self_pair_rows_.entry(source).nngp[0] =
        plan_.program.pair_rows.instructions[source].loads
            ? pass.readout(0, node).nngp
            : records.vectors[plan_.vector_place(node)].variances[static_cast<std::size_t>(i)];
  }
  self_pair_rows_.forward({.left = record, .same = 0, .recording = true, .stop = stop});
}

template <typename Scalar>
void TileBackwardPass<Scalar>::record(const Inputs<Scalar>& x, BatchRecords<Scalar>& records, Index i,
                                      const StopRequest& stop) {
  InputRecord<Scalar>& record = records.inputs[static_cast<std::size_t>(i)];
  self_forward(block_of_itself<Scalar>({&record, nullptr}), self_pass(x.shape(i)), records, i, stop);
}

template <typename Scalar>
void TileBackwardPass<Scalar>::self_backward(const TileBatch<Scalar>& batch, Index i,
                                             const StopRequest& stop) {
  const auto place = static_cast<std::size_t>(i);
  InputRecord<Scalar>& record = batch.records.inputs[place];
  RecordAdjoint<Scalar>& adjoint = batch.adjoints.inputs[place];
  PairBlock<Scalar> itself = block_of_itself<Scalar>({&record, &adjoint});
  itself.scalars = scalars_;
  PairBackwardPass<Scalar>& pass = self_pass(batch.x.shape(i));
  // The forward pass runs again, because the values that its backward pass reads were not kept.
  self_forward(itself, pass, batch.records, i, stop);
  self_pair_rows_.begin_backward();
  self_pair_rows_.backward(
      {.left = &record, .left_adjoint = &adjoint, .same = 0, .recording = true, .stop = stop});
  for (const std::size_t source : self_pair_rows_.sources()) {
    const NodeId node = self_pair_rows_.node_of(source);
    const Scalar of_source = self_pair_rows_.entry(source).nngp_adjoint[0];
    if (plan_.program.pair_rows.instructions[source].loads) {
      pass.set_readout_adjoint(0, node, {of_source, 0});
      continue;
    }
    const std::size_t vector = plan_.vector_place(node);
    const auto rows = batch.records.vectors[vector].rows();
    // The variance of a vector is |x|^2 / C, whose derivative is 2 x / C.
    batch.adjoints.vectors[vector].row(i) += (2 * of_source / static_cast<Scalar>(rows.cols())) * rows.row(i);
  }
  pass.backward(itself, stop);
  is_near_ties_ = pass.is_near_ties();
}

template <typename Scalar>
void TileBackwardPass<Scalar>::multiply_vectors(const TileBatch<Scalar>& left, const InputRange& rows,
                                                const TileBatch<Scalar>& right, const InputRange& columns,
                                                bool same) {
  for (std::size_t v = 0; v < plan_.vector_count; ++v) {
    const auto a = left.records.vectors[v].rows(), b = right.records.vectors[v].rows();
    products_[v].resize(rows.size(), columns.size());
    numerics::gemm(numerics::Transpose::no, numerics::Transpose::yes, rows.size(), columns.size(), a.cols(),
                   Scalar{1} / static_cast<Scalar>(a.cols()), {a.row(rows.begin).data(), a.cols()},
                   {b.row(columns.begin).data(), b.cols()}, Scalar{0}, products_[v].data(), columns.size());
    // The diagonal has the recorded variances, as in the forward engine, so that correlations of inputs with
    // themselves are exactly 1.
    for (Index i = std::max(rows.begin, columns.begin); same && i < std::min(rows.end, columns.end); ++i)
      products_[v](i - rows.begin, i - columns.begin) =
          left.records.vectors[v].variances[static_cast<std::size_t>(i)];
    product_adjoints_[v].setZero(rows.size(), columns.size());
  }
}

template <typename Scalar>
PairBlock<Scalar> TileBackwardPass<Scalar>::block_of(const TilePlaces& places, const InputRange& rows,
                                                     const InputRange& columns,
                                                     std::vector<std::size_t>& pairs) const {
  PairBlock<Scalar> block;
  block.left_wanted = places.left.wanted;
  block.right_wanted = places.right.wanted;
  block.scalars = scalars_;
  const auto input_of = [](const TileBatch<Scalar>& batch, Index i) {
    const auto place = static_cast<std::size_t>(i);
    return BlockInput<Scalar>{&batch.records.inputs[place], &batch.adjoints.inputs[place]};
  };
  for (Index i = rows.begin; i < rows.end; ++i) block.left.push_back(input_of(places.left, i));
  for (Index j = columns.begin; j < columns.end; ++j) block.right.push_back(input_of(places.right, j));
  pairs.clear();
  for_each_pair(rows.size(), columns.size(), [&](Index left, Index right) {
    const Index i = rows.begin + left, j = columns.begin + right;
    const auto pair =
        static_cast<std::size_t>((i - places.rows.begin) * places.columns.size() + j - places.columns.begin);
    if (!counts_[pair]) return;
    pairs.push_back(pair);
    block.pairs.push_back({left, right, places.same && i == j});
  });
  return block;
}

template <typename Scalar>
template <typename Body>
void TileBackwardPass<Scalar>::for_each_block(const TilePlaces& places, const Body& body) {
  std::vector<std::size_t> pairs;
  for (Index i = places.rows.begin; i < places.rows.end;) {
    const InputRange rows{i, end_of_side(places.left.x, i, places.rows.end, plan_.block_side)};
    for (Index j = places.columns.begin; j < places.columns.end;) {
      const InputRange columns{j, end_of_side(places.right.x, j, places.columns.end, plan_.block_side)};
      const PairBlock<Scalar> block = block_of(places, rows, columns, pairs);
      if (is_near_ties_) return;
      if (!pairs.empty()) body(pair_pass(places.left.x.shape(i), places.right.x.shape(j)), block, pairs);
      j = columns.end;
    }
    i = rows.end;
  }
}

/// Computes the readouts of all pairs that count. They are needed only if the backward pass after the positions reads
/// values.
template <typename Scalar>
void TileBackwardPass<Scalar>::read_readouts(const TilePlaces& places, const StopRequest& stop) {
  for_each_block(places, [&](PairBackwardPass<Scalar>& pass, const PairBlock<Scalar>& block,
                             const std::vector<std::size_t>& pairs) {
    pass.forward(block, PairBackwardPass<Scalar>::Readouts::wanted, stop);
    for (std::size_t number = 0; number < pairs.size(); ++number)
      for (const std::size_t source : pair_rows_.sources())
        if (plan_.program.pair_rows.instructions[source].loads)
          readouts_[source][pairs[number]] = pass.readout(number, pair_rows_.node_of(source));
  });
}

/// Passes a row of pairs forward from the sources through everything after the positions, and backward to the
/// adjoints of the sources.
template <typename Scalar>
void TileBackwardPass<Scalar>::pair_rows_backward(const TilePlaces& places,
                                                  const TileCotangents<Scalar>& cotangents, Index row,
                                                  const StopRequest& stop) {
  const Index left = places.rows.begin + row, size = places.columns.size();
  const bool has_itself = places.same && left >= places.columns.begin && left < places.columns.end;
  const Index same = has_itself ? left - places.columns.begin : -1;
  pair_rows_.begin_backward();
  const auto take = [&](const Matrix<Scalar>* matrix, GuardedRow<Scalar>& adjoint) {
    if (matrix != nullptr) std::copy_n(matrix->row(row).data(), size, adjoint.data());
  };
  take(cotangents.nngp, pair_rows_.result().nngp_adjoint);
  take(cotangents.ntk, pair_rows_.result().ntk_adjoint);
  const auto first = static_cast<std::size_t>(row * size);
  for (const std::size_t source : pair_rows_.sources()) {
    TapeEntry<Scalar>& entry = pair_rows_.entry(source);
    // Pairs that do not count, and readouts that nobody computed, are zeros: their adjoints are 0 or do not depend on
    // them.
    entry.nngp.fill(0);
    entry.ntk.fill(0);
    if (!plan_.program.pair_rows.instructions[source].loads) {
      const Matrix<Scalar>& products = products_[plan_.vector_place(pair_rows_.node_of(source))];
      std::copy_n(products.row(row).data(), size, entry.nngp.data());
      continue;
    }
    for (std::size_t j = 0; j < entry.size(); ++j) entry.nngp[j] = readouts_[source][first + j].nngp;
    for (std::size_t j = 0; j < entry.ntk.size(); ++j) entry.ntk[j] = readouts_[source][first + j].ntk;
  }
  const auto place = static_cast<std::size_t>(left);
  const typename PairRowBackwardPass<Scalar>::Row of_left{.left = &places.left.records.inputs[place],
                                                          .left_adjoint = &places.left.adjoints.inputs[place],
                                                          .same = same,
                                                          .stop = stop};
  pair_rows_.forward(of_left);
  pair_rows_.backward(of_left);
  for (const std::size_t source : pair_rows_.sources()) {
    const TapeEntry<Scalar>& entry = pair_rows_.entry(source);
    if (!plan_.program.pair_rows.instructions[source].loads) {
      std::copy(entry.nngp_adjoint.begin(), entry.nngp_adjoint.end(),
                product_adjoints_[plan_.vector_place(pair_rows_.node_of(source))].row(row).data());
      continue;
    }
    for (std::size_t j = 0; j < entry.size(); ++j)
      readout_adjoints_[source][first + j] = {entry.nngp_adjoint[j],
                                              plan_.with_ntk ? entry.ntk_adjoint[j] : Scalar{0}};
  }
}

template <typename Scalar>
void TileBackwardPass<Scalar>::positions_backward(const TilePlaces& places, const StopRequest& stop) {
  for_each_block(places, [&](PairBackwardPass<Scalar>& pass, const PairBlock<Scalar>& block,
                             const std::vector<std::size_t>& pairs) {
    for (std::size_t number = 0; number < pairs.size(); ++number)
      for (const std::size_t source : pair_rows_.sources())
        if (plan_.program.pair_rows.instructions[source].loads)
          pass.set_readout_adjoint(number, pair_rows_.node_of(source),
                                   readout_adjoints_[source][pairs[number]]);
    // Kept nodes are computed once more, because those of all blocks of a tile would not fit into memory. Readouts
    // are known by now.
    pass.forward(block, PairBackwardPass<Scalar>::Readouts::skipped, stop);
    pass.backward(block, stop);
    is_near_ties_ = is_near_ties_ || pass.is_near_ties();
  });
}

template <typename Scalar>
void TileBackwardPass<Scalar>::tile(const TileBatch<Scalar>& left, const InputRange& rows,
                                    const TileBatch<Scalar>& right, const InputRange& columns,
                                    const TileCotangents<Scalar>& cotangents, bool same,
                                    const StopRequest& stop) {
  const TilePlaces places{left, rows, right, columns, same};
  is_near_ties_ = false;
  const auto pairs = static_cast<std::size_t>(rows.size() * columns.size());
  const auto is_zero = [](const Matrix<Scalar>* matrix, std::size_t pair) {
    return matrix == nullptr || matrix->data()[pair] == 0;
  };
  counts_.resize(pairs);
  for (std::size_t pair = 0; pair < pairs; ++pair)
    // Pairs with zero cotangents, such as those below the diagonal, are left out: their adjoints are all 0.
    counts_[pair] = !is_zero(cotangents.nngp, pair) || !is_zero(cotangents.ntk, pair);
  readouts_.resize(plan_.program.pair_rows.instructions.size());
  readout_adjoints_.resize(readouts_.size());
  for (const std::size_t source : pair_rows_.sources()) {
    readouts_[source].assign(pairs, {});
    readout_adjoints_[source].assign(pairs, {});
  }
  std::vector<InputRecord<Scalar>*> records;
  std::vector<RecordAdjoint<Scalar>*> adjoints;
  for (Index j = columns.begin; j < columns.end; ++j) {
    records.push_back(&right.records.inputs[static_cast<std::size_t>(j)]);
    adjoints.push_back(&right.adjoints.inputs[static_cast<std::size_t>(j)]);
  }
  const bool has_positions = !plan_.program.steps.empty();
  multiply_vectors(left, rows, right, columns, same);
  pair_rows_.begin_tile(records);
  // A linear network after the positions passes adjoints backward without knowing values. Derivatives with respect to
  // scalars need the values all the same.
  if (has_positions && (!pair_rows_.is_linear() || scalars_ != nullptr)) read_readouts(places, stop);
  for (Index row = 0; row < rows.size(); ++row) {
    stop.check();
    pair_rows_backward(places, cotangents, row, stop);
    is_near_ties_ = pair_rows_.is_near_ties();
    if (is_near_ties_) return;
  }
  pair_rows_.end_tile(adjoints);
  if (has_positions) positions_backward(places, stop);
}

template <typename Scalar>
void TileBackwardPass<Scalar>::device_tile(const TileBatch<Scalar>& left, const InputRange& rows,
                                           const TileBatch<Scalar>& right, const InputRange& columns,
                                           const TileCotangents<Scalar>& cotangents, bool same,
                                           const StopRequest& stop) {
  stop.check();
  if (!device_) device_ = std::make_unique<VectorAdjoints<Scalar>>(*plan_.device);
  const std::vector<NodeId>& stages = plan_.device->source().stages();
  const auto variances = [&](BatchRecords<Scalar>& records, const InputRange& side) {
    Matrix<Scalar> of_side(static_cast<Index>(stages.size()), side.size());
    for (Index s = 0; s < of_side.rows(); ++s)
      for (Index i = 0; i < side.size(); ++i)
        of_side(s, i) = records.inputs[static_cast<std::size_t>(side.begin + i)].variances(
            stages[static_cast<std::size_t>(s)])[0];
    return of_side;
  };
  const Matrix<Scalar> of_left = variances(left.records, rows), of_right = variances(right.records, columns);
  multiply_vectors(left, rows, right, columns, same);
  const VectorTileAdjoints<Scalar> found =
      device_->run({.left_variances = of_left,
                    .right_variances = of_right,
                    .products = products_,
                    .nngp = cotangents.nngp,
                    .ntk = cotangents.ntk,
                    .diagonal = same ? std::optional(rows.begin - columns.begin) : std::nullopt},
                   product_adjoints_);
  is_near_ties_ = found.is_near_ties;
  const auto give = [&](BatchAdjoints<Scalar>& adjoints, const InputRange& side, const Matrix<Scalar>& sums) {
    for (Index s = 0; s < sums.rows(); ++s)
      for (Index i = 0; i < side.size(); ++i)
        adjoints.inputs[static_cast<std::size_t>(side.begin + i)].variances(
            stages[static_cast<std::size_t>(s)])[0] += sums(s, i);
  };
  give(left.adjoints, rows, found.left_variances);
  give(right.adjoints, columns, found.right_variances);
}

template class TileBackwardPass<float>;
template class TileBackwardPass<double>;

}  // namespace widelimit
