#include "kernel/backends/cpu/backward/run/vjp_computation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernel/run/first_error.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

template <typename Scalar>
VjpComputation<Scalar>::VjpComputation(const BackwardPlan& plan, const RunControl& run,
                                       ScalarAdjoints* scalars)
    : plan_{plan}, run_{run}, scalars_{scalars}, stop_{run.stop}, passes_([&plan] {
        return TileBackwardPass<Scalar>(plan);
      }) {}

template <typename Scalar>
void VjpComputation<Scalar>::record(RecordedBatch<Scalar>& batch) {
  FirstError errors;
  in_parallel(batch.x.size(), [&](Index i) {
    errors.run(i, [&] {
      try {
        passes_.local().record(batch.x, batch.records, i, stop_);
      } catch (const NumericalError& error) {
        throw NumericalError(fmt::format("gram_vjp: input {} of {}: {}", i, batch.name, error.what()));
      }
    });
  });
  errors.rethrow();
}

template <typename Scalar>
void VjpComputation<Scalar>::self_backward(const TileBatch<Scalar>& batch) {
  if (!batch.wanted) return;
  run_passes(batch.x.size(), [&](TileBackwardPass<Scalar>& pass, Index i) {
    if (is_near_ties_) return;
    pass.self_backward(batch, i, stop_);
    if (pass.is_near_ties()) is_near_ties_ = true;
  });
}

template <typename Scalar>
void VjpComputation<Scalar>::rectangular(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                         const KernelCotangents<Scalar>& cotangents) {
  const Index rows = left.x.size(), columns = right.x.size();
  begin_pairs(rows * columns, rows, columns);
  const std::vector<InputRange> row_blocks = blocks(rows), column_blocks = blocks(columns);
  const auto row_count = static_cast<Index>(row_blocks.size()),
             column_count = static_cast<Index>(column_blocks.size());
  // The tiles of a phase are a (cyclic) diagonal of the matrix of blocks: no two of them share a block of rows or of
  // columns. Every tile belongs to one phase.
  const Index phases = std::max(row_count, column_count), at_once = std::min(row_count, column_count);
  for (Index phase = 0; phase < phases; ++phase)
    run_passes(at_once, [&](TileBackwardPass<Scalar>& pass, Index b) {
      const Index row = row_count <= column_count ? b : (b + phase) % row_count,
                  column = row_count <= column_count ? (b + phase) % column_count : b;
      const InputRange &of_rows = row_blocks[static_cast<std::size_t>(row)],
                       &of_columns = column_blocks[static_cast<std::size_t>(column)];
      const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
        if (matrix.size() == 0) return {};
        return matrix.block(of_rows.begin, of_columns.begin, of_rows.size(), of_columns.size());
      };
      run_tile(pass, left, of_rows, right, of_columns, {part(cotangents.nngp), part(cotangents.ntk)}, false);
    });
  for (std::size_t v = 0; v < products_.size(); ++v) {
    const auto of_left = left.records.vectors[v].rows(), of_right = right.records.vectors[v].rows();
    if (left.wanted)
      vectors_backward(products_[v], numerics::Transpose::no, of_right, left.adjoints.vectors[v]);
    if (right.wanted)
      vectors_backward(products_[v], numerics::Transpose::yes, of_left, right.adjoints.vectors[v]);
  }
}

/// K_ij and K_ji are one number, computed once above the diagonal, and receive the sum of both cotangents. A block is
/// on the left side of one tile of a phase and on the right side of another; the sides have separate adjoints.
template <typename Scalar>
void VjpComputation<Scalar>::symmetric(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                       const KernelCotangents<Scalar>& cotangents) {
  const Index size = left.x.size();
  begin_pairs(size * (size + 1) / 2, size, size);
  const std::vector<InputRange> sides = blocks(size);
  const auto count = static_cast<Index>(sides.size());
  for (Index phase = 0; phase < count; ++phase)
    run_passes(count - phase, [&](TileBackwardPass<Scalar>& pass, Index b) {
      const InputRange &rows = sides[static_cast<std::size_t>(b)],
                       &columns = sides[static_cast<std::size_t>(b + phase)];
      const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
        if (matrix.size() == 0) return {};
        Matrix<Scalar> both =
            matrix.block(rows.begin, columns.begin, rows.size(), columns.size()) +
            matrix.block(columns.begin, rows.begin, columns.size(), rows.size()).transpose();
        if (phase > 0) return both;
        // K_ii is one entry, but the sum with the transpose counts its cotangent twice.
        both.diagonal() *= Scalar{0.5};
        return both.template triangularView<Eigen::Upper>();
      };
      run_tile(pass, left, rows, right, columns, {part(cotangents.nngp), part(cotangents.ntk)}, true);
    });
  if (plan_.device != nullptr) inputs_with_themselves(left, right, cotangents);
  for (std::size_t v = 0; v < products_.size(); ++v) {
    // With W the adjoints of products above and on the diagonal, the vectors X receive (W + W^T) X / C. Entries on
    // the diagonal count twice, since the derivative of |x|^2 is 2 x.
    const Matrix<Scalar> both = products_[v] + products_[v].transpose();
    vectors_backward(both, numerics::Transpose::no, left.records.vectors[v].rows(), left.adjoints.vectors[v]);
  }
}

/// Devices leave out the pairs (i, i), which have one number to differentiate by.
template <typename Scalar>
void VjpComputation<Scalar>::inputs_with_themselves(const TileBatch<Scalar>& left,
                                                    const TileBatch<Scalar>& right,
                                                    const KernelCotangents<Scalar>& cotangents) {
  run_passes(left.x.size(), [&](TileBackwardPass<Scalar>& pass, Index i) {
    const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
      if (matrix.size() == 0) return {};
      return matrix.block(i, i, 1, 1);
    };
    run_tile(pass, left, {i, i + 1}, right, {i, i + 1}, {part(cotangents.nngp), part(cotangents.ntk)}, true,
             Where::cpu);
  });
}

template <typename Scalar>
void VjpComputation<Scalar>::diagonal(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                      const KernelCotangents<Scalar>& cotangents) {
  begin_pairs(left.x.size(), left.x.size(), 1);
  run_passes(left.x.size(), [&](TileBackwardPass<Scalar>& pass, Index i) {
    const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
      if (matrix.size() == 0) return {};
      return matrix.row(i);
    };
    run_tile(pass, left, {i, i + 1}, right, {i, i + 1}, {part(cotangents.nngp), part(cotangents.ntk)}, true,
             Where::cpu);
  });
  for (std::size_t v = 0; v < products_.size(); ++v) {
    const auto vectors = left.records.vectors[v].rows();
    const Scalar scale = Scalar{2} / static_cast<Scalar>(vectors.cols());
    left.adjoints.vectors[v] = (scale * products_[v].col(0)).asDiagonal() * vectors;
  }
}

/// The sides of tiles. The grid depends on the number of inputs only, not on the threads, or sums would change their
/// order. Small tiles leave work for all threads; in large ones more pairs share packed arrays, and products of
/// vectors are faster.
template <typename Scalar>
std::vector<InputRange> VjpComputation<Scalar>::blocks(Index inputs) const {
  constexpr Index most_on_device = 1024, most_vectors = 256, most_inputs = 16, fewest_blocks = 8;
  const Index on_cpu = plan_.program.steps.empty() ? most_vectors : most_inputs;
  // A launch takes as many pairs as keep a device busy.
  const Index most = plan_.device == nullptr ? on_cpu : most_on_device;
  const Index wanted = std::clamp<Index>(inputs / fewest_blocks, plan_.block_side, most);
  const Index count = (inputs + wanted - 1) / wanted, side = (inputs + count - 1) / count;
  std::vector<InputRange> ranges;
  for (Index begin = 0; begin < inputs; begin += side)
    ranges.push_back({begin, std::min(begin + side, inputs)});
  return ranges;
}

/// Begins to count pairs, and clears the adjoints of products of vectors, [rows, columns].
template <typename Scalar>
void VjpComputation<Scalar>::begin_pairs(Index count, Index rows, Index columns) {
  pairs_ = count;
  done_ = 0;
  products_.assign(plan_.vector_count, Matrix<Scalar>::Zero(rows, columns));
}

/// The adjoints of the vectors of one side are op(W) Y / C, where W are the adjoints of the products and Y the
/// vectors of the other side. The products are cut into rows on a fixed grid, so that their bits do not depend on the
/// threads.
template <typename Scalar>
void VjpComputation<Scalar>::vectors_backward(const Matrix<Scalar>& products, numerics::Transpose transpose,
                                              const Eigen::Map<const Matrix<Scalar>>& vectors,
                                              Matrix<Scalar>& adjoints) {
  constexpr Index rows_at_once = 256;
  const bool turned = transpose == numerics::Transpose::yes;
  const Index rows = turned ? products.cols() : products.rows(), channels = vectors.cols();
  const Scalar scale = Scalar{1} / static_cast<Scalar>(channels);
  adjoints.resize(rows, channels);
  in_parallel((rows + rows_at_once - 1) / rows_at_once, [&](Index block) {
    const Index begin = block * rows_at_once, count = std::min(rows_at_once, rows - begin);
    const Scalar* first = products.data() + (turned ? begin : begin * products.cols());
    numerics::gemm(transpose, numerics::Transpose::no, count, channels, vectors.rows(), scale,
                   {first, products.cols()}, {vectors.data(), channels}, Scalar{0},
                   adjoints.row(begin).data(), channels);
  });
}

template <typename Scalar>
void VjpComputation<Scalar>::run_tile(TileBackwardPass<Scalar>& pass, const TileBatch<Scalar>& left,
                                      const InputRange& rows, const TileBatch<Scalar>& right,
                                      const InputRange& columns, const KernelCotangents<Scalar>& cotangents,
                                      bool same, Where where) {
  const auto given = [](const Matrix<Scalar>& matrix) { return matrix.size() == 0 ? nullptr : &matrix; };
  if (is_near_ties_) return;
  const TileCotangents<Scalar> of_tile{given(cotangents.nngp), given(cotangents.ntk)};
  const bool on_device = plan_.device != nullptr && where == Where::plan;
  if (on_device)
    pass.device_tile(left, rows, right, columns, of_tile, same, stop_);
  else
    pass.tile(left, rows, right, columns, of_tile, same, stop_);
  if (pass.is_near_ties()) {
    is_near_ties_ = true;
    return;
  }
  for (std::size_t v = 0; v < products_.size(); ++v)
    // The diagonal case has a single column; otherwise columns are those of the whole matrix. (A whole matrix of one
    // column begins at 0 anyway.)
    products_[v].block(rows.begin, products_[v].cols() > 1 ? columns.begin : 0, rows.size(), columns.size()) =
        pass.product_adjoint(v);
  if (!run_.progress) return;
  const std::lock_guard lock(reporting_);
  const bool triangle = same && rows.begin == columns.begin;
  // Devices leave out inputs with themselves.
  done_ += triangle ? rows.size() * (rows.size() + (on_device ? -1 : 1)) / 2 : rows.size() * columns.size();
  run_.progress(done_, pairs_);
}

template <typename Scalar>
template <typename Body>
void VjpComputation<Scalar>::in_parallel(Index count, const Body& body) {
  RunControl silent;
  silent.stop = run_.stop;
  numerics::on_threads(numerics::resolve_threads(run_.threads, "gram_vjp"), [&] {
    const numerics::BlasThreads one_thread_a_task(1, numerics::threads_at_once(numerics::threads_here()));
    numerics::for_each_task(count, silent, body);
  });
}

/// Calls body(pass, i) for every task, on threads. Derivatives with respect to scalars are summed up for each task by
/// itself and then added in the order of the tasks, so that they do not depend on the threads.
template <typename Scalar>
void VjpComputation<Scalar>::run_passes(Index count,
                                        const std::function<void(TileBackwardPass<Scalar>&, Index)>& body) {
  if (scalars_ == nullptr) return in_parallel(count, [&](Index i) { body(passes_.local(), i); });
  constexpr Index most_at_once = 1024;
  for (Index begin = 0; begin < count; begin += most_at_once) {
    const Index at_once = std::min(most_at_once, count - begin);
    std::vector<ScalarAdjoints> of_tasks(static_cast<std::size_t>(at_once),
                                         ScalarAdjoints(plan_.program.graph));
    in_parallel(at_once, [&](Index i) {
      TileBackwardPass<Scalar>& pass = passes_.local();
      pass.sum_scalars(&of_tasks[static_cast<std::size_t>(i)]);
      body(pass, begin + i);
      pass.sum_scalars(nullptr);
    });
    for (const ScalarAdjoints& of_task : of_tasks) scalars_->add(of_task);
  }
}

template class VjpComputation<float>;
template class VjpComputation<double>;

}  // namespace widelimit
