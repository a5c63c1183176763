#pragma once

#include <map>
#include <memory>
#include <span>

#include "kernel/backends/cpu/backward/pair_rows/pair_row_backward_pass.hpp"
#include "kernel/backends/cpu/backward/planes/pair_backward_pass.hpp"
#include "kernel/backends/cpu/backward/run/batch_records.hpp"
#include "kernel/backends/device/vector_adjoints.hpp"
#include "widelimit/kernel/gram_tiles.hpp"

namespace widelimit {

/// One side of the tiles: a batch, its records, and where their adjoints are summed up.
template <typename Scalar>
struct TileBatch {
  const Inputs<Scalar>& x;
  BatchRecords<Scalar>& records;
  BatchAdjoints<Scalar>& adjoints;
  bool wanted = true;  ///< False if nobody reads the adjoints, which are then not computed.
};

/// Derivatives of L with respect to the kernels of a tile's pairs, [row, column]; null for a kernel that L does not
/// depend on.
template <typename Scalar>
struct TileCotangents {
  const Matrix<Scalar>* nngp;
  const Matrix<Scalar>* ntk;
};

/// What one thread computes: records of inputs, tiles of pairs, and the backward pass of an input with itself. Every
/// thread has its own, because passes keep their buffers.
template <typename Scalar>
class TileBackwardPass {
 public:
  /// The plan must outlive the pass.
  explicit TileBackwardPass(const BackwardPlan& plan);

  /// Sets where derivatives with respect to graph_scalars() are added; null, as at first, if they are not wanted.
  void sum_scalars(ScalarAdjoints* scalars);

  /// Runs input i with itself and fills its record.
  void record(const Inputs<Scalar>& x, BatchRecords<Scalar>& records, Index i, const StopRequest& stop);

  /// Forward and backward through the pairs of rows and columns, adding to the adjoints of both. `same`: both are one
  /// batch, whose pairs (i, i) are inputs with themselves; pairs below the diagonal have cotangents 0.
  void tile(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
            const InputRange& columns, const TileCotangents<Scalar>& cotangents, bool same,
            const StopRequest& stop);

  /// The same on the device of the plan, but for inputs with themselves, whose contribution is left to the caller.
  void device_tile(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
                   const InputRange& columns, const TileCotangents<Scalar>& cotangents, bool same,
                   const StopRequest& stop);

  /// The adjoints [rows, columns] of the last tile's products of vectors, for a source without positions. Their
  /// contribution to the vectors is left to the caller, who multiplies matrices of all tiles at once.
  [[nodiscard]] const Matrix<Scalar>& product_adjoint(std::size_t vector) const {
    return product_adjoints_[vector];
  }

  /// Whether the last tile(), or the last self_backward(), met entries too near a tie for float. What it then added to
  /// adjoints is incomplete.
  [[nodiscard]] bool is_near_ties() const { return is_near_ties_; }

  /// Passes from the adjoints of the record of input i, which must be complete, to those of its features.
  void self_backward(const TileBatch<Scalar>& batch, Index i, const StopRequest& stop);

 private:
  PairBackwardPass<Scalar>& pair_pass(const Shape& left, const Shape& right);
  PairBackwardPass<Scalar>& self_pass(const Shape& shape);
  void self_forward(const PairBlock<Scalar>& itself, PairBackwardPass<Scalar>& pass,
                    BatchRecords<Scalar>& records, Index i, const StopRequest& stop);
  void multiply_vectors(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
                        const InputRange& columns, bool same);
  /// The sides of a tile. `same` says that both are parts of one batch.
  struct TilePlaces {
    const TileBatch<Scalar>& left;
    InputRange rows;
    const TileBatch<Scalar>& right;
    InputRange columns;
    bool same;
  };
  /// Cuts the pairs of a tile whose cotangents are not 0 into blocks of inputs of one shape each, and calls
  /// body(pass, block, the pairs' places in the tile) for them.
  template <typename Body>
  void for_each_block(const TilePlaces& places, const Body& body);
  [[nodiscard]] PairBlock<Scalar> block_of(const TilePlaces& places, const InputRange& rows,
                                           const InputRange& columns, std::vector<std::size_t>& pairs) const;
  void read_readouts(const TilePlaces& places, const StopRequest& stop);
  void pair_rows_backward(const TilePlaces& places, const TileCotangents<Scalar>& cotangents, Index row,
                          const StopRequest& stop);
  void positions_backward(const TilePlaces& places, const StopRequest& stop);

  const BackwardPlan& plan_;
  bool is_near_ties_ = false;
  PairRowBackwardPass<Scalar> pair_rows_;
  PairRowBackwardPass<Scalar> self_pair_rows_;
  std::map<std::pair<Shape, Shape>, std::unique_ptr<PairBackwardPass<Scalar>>> pairs_;
  std::map<Shape, std::unique_ptr<PairBackwardPass<Scalar>>> selves_;
  std::vector<Matrix<Scalar>> products_;                             ///< [plan.vector_count][row, column]
  std::vector<Matrix<Scalar>> product_adjoints_;                     ///< [plan.vector_count]
  std::vector<std::vector<KernelValues<Scalar>>> readouts_;          ///< [source][pair of the tile]
  std::vector<std::vector<KernelValues<Scalar>>> readout_adjoints_;  ///< [source][pair of the tile]
  ScalarAdjoints* scalars_ = nullptr;
  std::unique_ptr<VectorAdjoints<Scalar>> device_;  ///< Made by the first device_tile().
  std::vector<bool> counts_;  ///< [pair of the tile]: whether one of its cotangents is not 0.
};

}  // namespace widelimit
