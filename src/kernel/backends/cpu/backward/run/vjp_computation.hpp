#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <vector>

#include "kernel/backends/cpu/backward/run/tile_backward_pass.hpp"
#include "numerics/gemm.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

namespace widelimit {

/// A batch with its records. Errors call it `name`.
template <typename Scalar>
struct RecordedBatch {
  const Inputs<Scalar>& x;
  const char* name;
  BatchRecords<Scalar> records;

  RecordedBatch(const BackwardPlan& plan, const Inputs<Scalar>& inputs, const char* called,
                const StopRequest& stop)
      : x{inputs}, name{called}, records(plan, inputs, stop) {}
};

/// The backward pass of a Gram matrix, tile by tile, on threads. Tiles that run at the same time share no input of a
/// side. Every adjoint therefore has one writer at a time, and the sums over pairs have one order, whatever the
/// threads do.
///
/// It is used in this order: record() each batch, then the pairs by one of the three functions, then self_backward()
/// for each batch.
template <typename Scalar>
class VjpComputation {
 public:
  /// Everything must outlive the computation. Derivatives with respect to graph_scalars() are added to `scalars` if
  /// it is not null.
  VjpComputation(const BackwardPlan& plan, const RunControl& run, ScalarAdjoints* scalars = nullptr);

  /// Runs every input with itself and fills its record, which pairs read.
  void record(RecordedBatch<Scalar>& batch);

  /// Forward and backward passes of all pairs of two batches, of those of one batch, or of each input with itself.
  /// They add to the adjoints of both sides, which in the last two cases belong to the same batch.
  void rectangular(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                   const KernelCotangents<Scalar>& cotangents);
  void symmetric(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                 const KernelCotangents<Scalar>& cotangents);
  void diagonal(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                const KernelCotangents<Scalar>& cotangents);

  /// Passes from the adjoints of records, complete after the pairs, to those of features.
  void self_backward(const TileBatch<Scalar>& batch);

  /// Whether pairs have come nearer to ties than float has digits for (steep_stages.hpp). The adjoints are then
  /// incomplete, and the derivatives are to be computed in double. Whether it happens does not depend on threads.
  [[nodiscard]] bool is_near_ties() const { return is_near_ties_; }

 private:
  [[nodiscard]] std::vector<InputRange> blocks(Index inputs) const;
  void begin_pairs(Index count, Index rows, Index columns);
  void vectors_backward(const Matrix<Scalar>& products, numerics::Transpose transpose,
                        const Eigen::Map<const Matrix<Scalar>>& vectors, Matrix<Scalar>& adjoints);
  /// Where the pairs of a tile are computed: where the plan says, or those of inputs with themselves on the CPU.
  enum class Where { plan, cpu };
  void run_tile(TileBackwardPass<Scalar>& pass, const TileBatch<Scalar>& left, const InputRange& rows,
                const TileBatch<Scalar>& right, const InputRange& columns,
                const KernelCotangents<Scalar>& cotangents, bool same, Where where = Where::plan);
  void inputs_with_themselves(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                              const KernelCotangents<Scalar>& cotangents);
  void run_passes(Index count, const std::function<void(TileBackwardPass<Scalar>&, Index)>& body);
  template <typename Body>
  void in_parallel(Index count, const Body& body);

  const BackwardPlan& plan_;
  const RunControl& run_;
  ScalarAdjoints* scalars_;
  StopRequest stop_;
  tbb::enumerable_thread_specific<TileBackwardPass<Scalar>> passes_;
  std::vector<Matrix<Scalar>> products_;  ///< [plan.vector_count], adjoints of all products of vectors.
  std::atomic<bool> is_near_ties_ = false;
  std::mutex reporting_;
  Index pairs_ = 0;
  Index done_ = 0;
};

}  // namespace widelimit
