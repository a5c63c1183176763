#include "widelimit/kernel/gram_vjp.hpp"

#include <fmt/format.h>
#include <tbb/enumerable_thread_specific.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "kernel/derivatives/tile_walk.hpp"
#include "kernel/run/first_error.hpp"
#include "kernel/run/gram_checks.hpp"
#include "kernel/run/gram_run.hpp"
#include "numerics/blas_threads.hpp"
#include "numerics/gemm.hpp"
#include "numerics/tasks.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

template <typename Scalar>
void check_cotangent(const Matrix<Scalar>& cotangent, const char* kernel, Index rows, Index columns) {
  if (cotangent.size() == 0) return;
  if (cotangent.rows() != rows || cotangent.cols() != columns)
    throw ArgumentError(fmt::format("gram_vjp: the cotangents of the {} must be [{}, {}], got [{}, {}]",
                                    kernel, rows, columns, cotangent.rows(), cotangent.cols()));
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j)
      if (!std::isfinite(cotangent(i, j)))
        throw ArgumentError(
            fmt::format("gram_vjp: the cotangents of the {} must be finite, got {} at ({}, {})", kernel,
                        cotangent(i, j), i, j));
}

template <typename Scalar>
void check_cotangents(const KernelCotangents<Scalar>& cotangents, Index rows, Index columns) {
  if (cotangents.nngp.size() == 0 && cotangents.ntk.size() == 0)
    throw ArgumentError("gram_vjp: cotangents of the nngp, the ntk or both must be given, got none");
  check_cotangent(cotangents.nngp, "nngp", rows, columns);
  check_cotangent(cotangents.ntk, "ntk", rows, columns);
}

/// A batch with what is recorded of it.
template <typename Scalar>
struct Batch {
  const Inputs<Scalar>& x;
  const char* name;
  BatchRecords<Scalar> records;

  Batch(const DerivativePlan& plan, const Inputs<Scalar>& inputs, const char* called, const StopRequest& stop)
      : x{inputs}, name{called}, records(plan, inputs, stop) {}
};

/// Tiles of pairs on threads. Tiles that run at the same time share no input of a side, so that sums over pairs have one
/// order, whatever the threads.
template <typename Scalar>
class Computation {
 public:
  Computation(const DerivativePlan& plan, const RunControl& run)
      : plan_{plan}, run_{run}, stop_{run.stop}, walks_([&plan] { return TileWalk<Scalar>(plan); }) {}

  void record(Batch<Scalar>& batch) {
    FirstError errors;
    in_parallel(batch.x.size(), [&](Index i) {
      errors.run(i, [&] {
        try {
          walks_.local().record(batch.x, batch.records, i, stop_);
        } catch (const NumericalError& error) {
          throw NumericalError(fmt::format("gram_vjp: input {} of {}: {}", i, batch.name, error.what()));
        }
      });
    });
    errors.rethrow();
  }

  void self_back(const TileBatch<Scalar>& batch) {
    if (!batch.wanted) return;
    in_parallel(batch.x.size(), [&](Index i) { walks_.local().self_back(batch, i, stop_); });
  }

  void rectangular(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                   const KernelCotangents<Scalar>& cotangents) {
    const Index rows = left.x.size(), columns = right.x.size();
    begin_pairs(rows * columns, rows, columns);
    const std::vector<InputRange> row_blocks = blocks(rows), column_blocks = blocks(columns);
    const auto row_count = static_cast<Index>(row_blocks.size()),
               column_count = static_cast<Index>(column_blocks.size());
    const Index phases = std::max(row_count, column_count), at_once = std::min(row_count, column_count);
    for (Index phase = 0; phase < phases; ++phase)
      in_parallel(at_once, [&](Index b) {
        const Index row = row_count <= column_count ? b : (b + phase) % row_count,
                    column = row_count <= column_count ? (b + phase) % column_count : b;
        const InputRange &of_rows = row_blocks[static_cast<std::size_t>(row)],
                         &of_columns = column_blocks[static_cast<std::size_t>(column)];
        const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
          if (matrix.size() == 0) return {};
          return matrix.block(of_rows.begin, of_columns.begin, of_rows.size(), of_columns.size());
        };
        run_tile(left, of_rows, right, of_columns, {part(cotangents.nngp), part(cotangents.ntk)}, false);
      });
    for (std::size_t v = 0; v < products_.size(); ++v) {
      const auto of_left = left.records.vectors[v].rows(), of_right = right.records.vectors[v].rows();
      if (left.wanted)
        vectors_back(products_[v], numerics::Transpose::no, of_right, left.adjoints.vectors[v]);
      if (right.wanted)
        vectors_back(products_[v], numerics::Transpose::yes, of_left, right.adjoints.vectors[v]);
    }
  }

  /// K_ij and K_ji are one number: their cotangents are added up above the diagonal.
  void symmetric(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                 const KernelCotangents<Scalar>& cotangents) {
    const Index size = left.x.size();
    begin_pairs(size * (size + 1) / 2, size, size);
    const std::vector<InputRange> sides = blocks(size);
    const auto count = static_cast<Index>(sides.size());
    for (Index phase = 0; phase < count; ++phase)
      in_parallel(count - phase, [&](Index b) {
        const InputRange &rows = sides[static_cast<std::size_t>(b)],
                         &columns = sides[static_cast<std::size_t>(b + phase)];
        const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
          if (matrix.size() == 0) return {};
          Matrix<Scalar> both =
              matrix.block(rows.begin, columns.begin, rows.size(), columns.size()) +
              matrix.block(columns.begin, rows.begin, columns.size(), rows.size()).transpose();
          if (phase > 0) return both;
          both.diagonal() *= Scalar{0.5};
          return both.template triangularView<Eigen::Upper>();
        };
        run_tile(left, rows, right, columns, {part(cotangents.nngp), part(cotangents.ntk)}, true);
      });
    for (std::size_t v = 0; v < products_.size(); ++v) {
      const Matrix<Scalar> both = products_[v] + products_[v].transpose();
      vectors_back(both, numerics::Transpose::no, left.records.vectors[v].rows(), left.adjoints.vectors[v]);
    }
  }

  void diagonal(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                const KernelCotangents<Scalar>& cotangents) {
    begin_pairs(left.x.size(), left.x.size(), 1);
    in_parallel(left.x.size(), [&](Index i) {
      const auto part = [&](const Matrix<Scalar>& matrix) -> Matrix<Scalar> {
        if (matrix.size() == 0) return {};
        return matrix.row(i);
      };
      run_tile(left, {i, i + 1}, right, {i, i + 1}, {part(cotangents.nngp), part(cotangents.ntk)}, true);
    });
    for (std::size_t v = 0; v < products_.size(); ++v) {
      const auto vectors = left.records.vectors[v].rows();
      const Scalar scale = Scalar{2} / static_cast<Scalar>(vectors.cols());
      left.adjoints.vectors[v] = (scale * products_[v].col(0)).asDiagonal() * vectors;
    }
  }

 private:
  /// The grid depends on the number of inputs only. Small tiles leave work for threads; in large ones inputs share what is
  /// brought into the order of a plane, and products of vectors are fast.
  [[nodiscard]] std::vector<InputRange> blocks(Index inputs) const {
    constexpr Index most_vectors = 256, most_inputs = 16, fewest_blocks = 8;
    const Index most = plan_.program.steps.empty() ? most_vectors : most_inputs;
    const Index wanted = std::clamp<Index>(inputs / fewest_blocks, plan_.block_side, most);
    const Index count = (inputs + wanted - 1) / wanted, side = (inputs + count - 1) / count;
    std::vector<InputRange> ranges;
    for (Index begin = 0; begin < inputs; begin += side)
      ranges.push_back({begin, std::min(begin + side, inputs)});
    return ranges;
  }

  /// `rows`, `columns`: where products of vectors stand.
  void begin_pairs(Index count, Index rows, Index columns) {
    pairs_ = count;
    done_ = 0;
    products_.assign(plan_.vector_count, Matrix<Scalar>::Zero(rows, columns));
  }

  /// What products of vectors give to those of one side: op(W) Y / C, of the adjoints W of the products and the other
  /// side's vectors Y.
  void vectors_back(const Matrix<Scalar>& products, numerics::Transpose transpose,
                    const Eigen::Map<const Matrix<Scalar>>& vectors, Matrix<Scalar>& adjoints) {
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

  void run_tile(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
                const InputRange& columns, const KernelCotangents<Scalar>& cotangents, bool same) {
    const auto given = [](const Matrix<Scalar>& matrix) { return matrix.size() == 0 ? nullptr : &matrix; };
    TileWalk<Scalar>& walk = walks_.local();
    walk.tile(left, rows, right, columns, {given(cotangents.nngp), given(cotangents.ntk)}, same, stop_);
    for (std::size_t v = 0; v < products_.size(); ++v)
      products_[v].block(rows.begin, products_[v].cols() > 1 ? columns.begin : 0, rows.size(),
                         columns.size()) = walk.product_adjoint(v);
    if (!run_.progress) return;
    const std::lock_guard lock(reporting_);
    const bool triangle = same && rows.begin == columns.begin;
    done_ += triangle ? rows.size() * (rows.size() + 1) / 2 : rows.size() * columns.size();
    run_.progress(done_, pairs_);
  }

  template <typename Body>
  void in_parallel(Index count, const Body& body) {
    RunControl silent;
    silent.stop = run_.stop;
    numerics::on_threads(numerics::resolve_threads(run_.threads, "gram_vjp"), [&] {
      const numerics::BlasThreads one_thread_a_task(1, numerics::threads_at_once(numerics::threads_here()));
      numerics::for_each_task(count, silent, body);
    });
  }

  const DerivativePlan& plan_;
  const RunControl& run_;
  StopRequest stop_;
  tbb::enumerable_thread_specific<TileWalk<Scalar>> walks_;
  std::vector<Matrix<Scalar>> products_;  ///< [plan.vector_count], adjoints of all products of vectors.
  std::mutex reporting_;
  Index pairs_ = 0;
  Index done_ = 0;
};

template <typename Scalar>
DerivativePlan plan_of(const Network& network, const GramTask& task, const Inputs<Scalar>& x1,
                       const Inputs<Scalar>& x2, const KernelCotangents<Scalar>& cotangents) {
  DerivativePlan plan = make_derivative_plan(network, shapes_of(x1, "x1"), shapes_of(x2, "x2"), x1.channels(),
                                             task.masks, cotangents.ntk.size() > 0);
  task.check(plan.program.graph);
  return plan;
}

/// The gradient, if all of it is finite: what layers find of themselves names them, what overflows elsewhere ends here.
template <typename Scalar>
xt::xarray<Scalar> finite_gradient(xt::xarray<Scalar> gradient, const char* name) {
  const auto found =
      std::find_if_not(gradient.begin(), gradient.end(), [](Scalar x) { return std::isfinite(x); });
  if (found == gradient.end()) return gradient;
  const auto place = static_cast<std::size_t>(std::distance(gradient.begin(), found));
  throw NumericalError(
      fmt::format("gram_vjp: the derivative by input {} of {} is {}: rescale the inputs, weights or "
                  "cotangents, use double, and look "
                  "at the derivatives of layers of your own",
                  place / (gradient.size() / gradient.shape(0)), name, *found));
}

enum class Pairs { all, diagonal };

template <typename Scalar>
xt::xarray<Scalar> of_one_batch(const Network& network, const Inputs<Scalar>& x,
                                const KernelCotangents<Scalar>& cotangents, const RunControl& run,
                                Pairs pairs) {
  check_finite(x, "x", run.threads);
  check_cotangents(cotangents, x.size(), pairs == Pairs::all ? x.size() : 1);
  const DerivativePlan plan = plan_of(network, symmetric_task(network, x), x, x, cotangents);
  const StopRequest stop(run.stop);
  Batch<Scalar> batch(plan, x, "x", stop);
  Computation<Scalar> computation(plan, run);
  computation.record(batch);
  // Of the inputs as the left and as the right ones.
  BatchAdjoints<Scalar> adjoints(batch.records, stop), as_right(batch.records, stop);
  const TileBatch<Scalar> left{x, batch.records, adjoints}, right{x, batch.records, as_right};
  if (pairs == Pairs::all)
    computation.symmetric(left, right, cotangents);
  else
    computation.diagonal(left, right, cotangents);
  adjoints.add(as_right);
  computation.self_back(left);
  return finite_gradient(input_gradient(plan, x, adjoints), "x");
}

}  // namespace

template <typename Scalar>
GramVjp<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                         const KernelCotangents<Scalar>& cotangents, VjpInputs wanted,
                         const RunControl& run) {
  check_finite(x1, "x1", run.threads);
  check_finite(x2, "x2", run.threads);
  check_alike(x1, x2);
  check_cotangents(cotangents, x1.size(), x2.size());
  const DerivativePlan plan = plan_of(network, rectangular_task(network, x1, x2), x1, x2, cotangents);
  const StopRequest stop(run.stop);
  Batch<Scalar> first(plan, x1, "x1", stop), second(plan, x2, "x2", stop);
  Computation<Scalar> computation(plan, run);
  computation.record(first);
  computation.record(second);
  BatchAdjoints<Scalar> of_first(first.records, stop), of_second(second.records, stop);
  const TileBatch<Scalar> left{x1, first.records, of_first, wanted != VjpInputs::x2},
      right{x2, second.records, of_second, wanted != VjpInputs::x1};
  computation.rectangular(left, right, cotangents);
  computation.self_back(left);
  computation.self_back(right);
  GramVjp<Scalar> derivatives;
  if (left.wanted) derivatives.x1 = finite_gradient(input_gradient(plan, x1, of_first), "x1");
  if (right.wanted) derivatives.x2 = finite_gradient(input_gradient(plan, x2, of_second), "x2");
  return derivatives;
}

template <typename Scalar>
GramVjp<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                         const KernelCotangents<Scalar>& cotangents, const RunControl& run) {
  return gram_vjp(network, x1, x2, cotangents, VjpInputs::both, run);
}

template <typename Scalar>
xt::xarray<Scalar> gram_vjp(const Network& network, const Inputs<Scalar>& x,
                            const KernelCotangents<Scalar>& cotangents, const RunControl& run) {
  return of_one_batch(network, x, cotangents, run, Pairs::all);
}

template <typename Scalar>
xt::xarray<Scalar> gram_diagonal_vjp(const Network& network, const Inputs<Scalar>& x,
                                     const KernelCotangents<Scalar>& cotangents, const RunControl& run) {
  return of_one_batch(network, x, cotangents, run, Pairs::diagonal);
}

template GramVjp<float> gram_vjp(const Network&, const Inputs<float>&, const Inputs<float>&,
                                 const KernelCotangents<float>&, const RunControl&);
template GramVjp<float> gram_vjp(const Network&, const Inputs<float>&, const Inputs<float>&,
                                 const KernelCotangents<float>&, VjpInputs, const RunControl&);
template GramVjp<double> gram_vjp(const Network&, const Inputs<double>&, const Inputs<double>&,
                                  const KernelCotangents<double>&, VjpInputs, const RunControl&);
template GramVjp<double> gram_vjp(const Network&, const Inputs<double>&, const Inputs<double>&,
                                  const KernelCotangents<double>&, const RunControl&);
template xt::xarray<float> gram_vjp(const Network&, const Inputs<float>&, const KernelCotangents<float>&,
                                    const RunControl&);
template xt::xarray<double> gram_vjp(const Network&, const Inputs<double>&, const KernelCotangents<double>&,
                                     const RunControl&);
template xt::xarray<float> gram_diagonal_vjp(const Network&, const Inputs<float>&,
                                             const KernelCotangents<float>&, const RunControl&);
template xt::xarray<double> gram_diagonal_vjp(const Network&, const Inputs<double>&,
                                              const KernelCotangents<double>&, const RunControl&);

}  // namespace widelimit
