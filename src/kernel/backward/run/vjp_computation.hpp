#pragma once

#include <tbb/enumerable_thread_specific.h>

#include <functional>
#include <mutex>
#include <vector>

#include "kernel/backward/run/tile_backward_pass.hpp"
#include "numerics/gemm.hpp"
#include "widelimit/kernel/gram_vjp.hpp"

namespace widelimit {

/// A batch with what is recorded of it.
template <typename Scalar>
struct RecordedBatch {
  const Inputs<Scalar>& x;
  const char* name;
  BatchRecords<Scalar> records;

  RecordedBatch(const BackwardPlan& plan, const Inputs<Scalar>& inputs, const char* called,
                const StopRequest& stop)
      : x{inputs}, name{called}, records(plan, inputs, stop) {}
};

/// The backward pass of Gram matrices: tiles of pairs on threads. Tiles that run at the same time share no input of a
/// side, so that sums over pairs have one order, whatever the threads.
template <typename Scalar>
class VjpComputation {
 public:
  /// Everything must outlive the computation. `scalars`: where derivatives by graph_scalars() are added; may be null.
  VjpComputation(const BackwardPlan& plan, const RunControl& run, ScalarAdjoints* scalars = nullptr);

  /// In the forward pass, before anything else.
  void record(RecordedBatch<Scalar>& batch);

  /// All pairs of two batches, those of one batch, or of each input with itself: adds to the adjoints of both sides,
  /// which are the same batch's in the last two.
  void rectangular(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                   const KernelCotangents<Scalar>& cotangents);
  void symmetric(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                 const KernelCotangents<Scalar>& cotangents);
  void diagonal(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                const KernelCotangents<Scalar>& cotangents);

  /// After the pairs: from the adjoints of what was recorded to those of features.
  void self_backward(const TileBatch<Scalar>& batch);

 private:
  [[nodiscard]] std::vector<InputRange> blocks(Index inputs) const;
  void begin_pairs(Index count, Index rows, Index columns);
  void vectors_backward(const Matrix<Scalar>& products, numerics::Transpose transpose,
                        const Eigen::Map<const Matrix<Scalar>>& vectors, Matrix<Scalar>& adjoints);
  void run_tile(TileBackwardPass<Scalar>& pass, const TileBatch<Scalar>& left, const InputRange& rows,
                const TileBatch<Scalar>& right, const InputRange& columns,
                const KernelCotangents<Scalar>& cotangents, bool same);
  void run_passes(Index count, const std::function<void(TileBackwardPass<Scalar>&, Index)>& body);
  template <typename Body>
  void in_parallel(Index count, const Body& body);

  const BackwardPlan& plan_;
  const RunControl& run_;
  ScalarAdjoints* scalars_;
  StopRequest stop_;
  tbb::enumerable_thread_specific<TileBackwardPass<Scalar>> passes_;
  std::vector<Matrix<Scalar>> products_;  ///< [plan.vector_count], adjoints of all products of vectors.
  std::mutex reporting_;
  Index pairs_ = 0;
  Index done_ = 0;
};

}  // namespace widelimit
