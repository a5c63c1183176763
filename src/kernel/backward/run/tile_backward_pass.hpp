#pragma once

#include <map>
#include <memory>
#include <span>

#include "kernel/backward/planes/pair_backward_pass.hpp"
#include "kernel/backward/points/point_backward_pass.hpp"
#include "kernel/backward/run/batch_records.hpp"
#include "widelimit/kernel/gram_tiles.hpp"

namespace widelimit {

/// What a batch gives to tiles of pairs.
template <typename Scalar>
struct TileBatch {
  const Inputs<Scalar>& x;
  BatchRecords<Scalar>& records;
  BatchAdjoints<Scalar>& adjoints;
  bool wanted = true;  ///< Its adjoints are: else what they cost is left out.
};

/// Derivatives of L by the kernels of a tile's pairs [row, column]; null for a kernel that L does not depend on.
template <typename Scalar>
struct TileCotangents {
  const Matrix<Scalar>* nngp;
  const Matrix<Scalar>* ntk;
};

/// Everything that one thread needs: records of inputs, tiles of pairs and the inputs' own backward pass.
template <typename Scalar>
class TileBackwardPass {
 public:
  /// The plan must outlive the pass.
  explicit TileBackwardPass(const BackwardPlan& plan);

  /// Where derivatives by graph_scalars() are added from now on; null, as at first: nowhere.
  void sum_scalars(ScalarAdjoints* scalars);

  /// Records input i.
  void record(const Inputs<Scalar>& x, BatchRecords<Scalar>& records, Index i, const StopRequest& stop);

  /// Forward and backward through the pairs of rows and columns, adding to the adjoints of both. `same`: both are one
  /// batch, whose pairs (i, i) are inputs with themselves; pairs below the diagonal have cotangents 0.
  void tile(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
            const InputRange& columns, const TileCotangents<Scalar>& cotangents, bool same,
            const StopRequest& stop);

  /// The adjoints [rows, columns] of the last tile's products of vectors, of a source without positions: what they give
  /// to the vectors is left to the caller, who multiplies larger matrices.
  [[nodiscard]] const Matrix<Scalar>& product_adjoint(std::size_t vector) const {
    return product_adjoints_[vector];
  }

  /// From the adjoints of what was recorded of input i to those of its features.
  void self_backward(const TileBatch<Scalar>& batch, Index i, const StopRequest& stop);

 private:
  PairBackwardPass<Scalar>& pair_pass(const Shape& left, const Shape& right);
  PairBackwardPass<Scalar>& self_pass(const Shape& shape);
  void self_forward(const PairBlock<Scalar>& itself, PairBackwardPass<Scalar>& pass,
                    BatchRecords<Scalar>& records, Index i, const StopRequest& stop);
  void multiply_vectors(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
                        const InputRange& columns, bool same);
  /// Cuts the pairs of a tile whose cotangents are not 0 into blocks of inputs of one shape each, and calls
  /// body(pass, block, the pairs' places in the tile) for them.
  struct TilePlaces {
    const TileBatch<Scalar>& left;
    InputRange rows;
    const TileBatch<Scalar>& right;
    InputRange columns;
    bool same;
  };
  template <typename Body>
  void for_each_block(const TilePlaces& places, const Body& body);
  [[nodiscard]] PairBlock<Scalar> block_of(const TilePlaces& places, const InputRange& rows,
                                           const InputRange& columns, std::vector<std::size_t>& pairs) const;
  void read_readouts(const TilePlaces& places, const StopRequest& stop);
  void points_backward(const TilePlaces& places, const TileCotangents<Scalar>& cotangents, Index row,
                       const StopRequest& stop);
  void positions_backward(const TilePlaces& places, const StopRequest& stop);

  const BackwardPlan& plan_;
  PointBackwardPass<Scalar> points_;
  PointBackwardPass<Scalar> self_points_;
  std::map<std::pair<Shape, Shape>, std::unique_ptr<PairBackwardPass<Scalar>>> pairs_;
  std::map<Shape, std::unique_ptr<PairBackwardPass<Scalar>>> selves_;
  std::vector<Matrix<Scalar>> products_;                             ///< [plan.vector_count], of a tile.
  std::vector<Matrix<Scalar>> product_adjoints_;                     ///< [plan.vector_count]
  std::vector<std::vector<KernelValues<Scalar>>> readouts_;          ///< [source][pair of the tile]
  std::vector<std::vector<KernelValues<Scalar>>> readout_adjoints_;  ///< [source][pair of the tile]
  ScalarAdjoints* scalars_ = nullptr;
  std::vector<bool> counts_;  ///< [pair of the tile]: its cotangents are not all 0.
};

}  // namespace widelimit
