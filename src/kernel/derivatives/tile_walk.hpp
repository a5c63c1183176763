#pragma once

#include <map>
#include <memory>
#include <span>

#include "kernel/derivatives/batch_records.hpp"
#include "kernel/derivatives/pair_walk.hpp"
#include "kernel/derivatives/point_walk.hpp"

namespace widelimit {

/// What a batch gives to tiles of pairs.
template <typename Scalar>
struct TileBatch {
  const Inputs<Scalar>& x;
  BatchRecords<Scalar>& records;
  BatchAdjoints<Scalar>& adjoints;
};

/// Adjoints of the kernels of a tile: derivatives of L by the entries [i, j] of the Gram matrices; null for a kernel that
/// L does not depend on.
template <typename Scalar>
struct TileCotangents {
  const Matrix<Scalar>* nngp;
  const Matrix<Scalar>* ntk;
};

/// Inputs [begin, end) of a batch.
struct InputRange {
  Index begin;
  Index end;

  [[nodiscard]] Index size() const { return end - begin; }
};

/// Everything that one thread needs: records of inputs, tiles of pairs and the inputs' own way back.
template <typename Scalar>
class TileWalk {
 public:
  /// The plan must outlive the walk.
  explicit TileWalk(const DerivativePlan& plan);

  /// Records input i.
  void record(const Inputs<Scalar>& x, BatchRecords<Scalar>& records, Index i, const StopRequest& stop);

  /// Forth and back through the pairs of rows and columns, adding to the adjoints of both. `same`: both are one batch,
  /// whose pairs (i, i) are inputs with themselves; pairs below the diagonal have cotangents 0.
  void tile(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
            const InputRange& columns, const TileCotangents<Scalar>& cotangents, bool same,
            const StopRequest& stop);

  /// From the adjoints of what was recorded of input i to those of its features.
  void self_back(const TileBatch<Scalar>& batch, Index i, const StopRequest& stop);

 private:
  PairWalk<Scalar>& pair_walk(const Shape& left, const Shape& right);
  PairWalk<Scalar>& self_walk(const Shape& shape);
  [[nodiscard]] std::size_t vector_place(NodeId node) const;
  void self_forth(const PairSides<Scalar>& sides, PairWalk<Scalar>& walk, BatchRecords<Scalar>& records,
                  Index i, const StopRequest& stop);
  void multiply_vectors(const TileBatch<Scalar>& left, const InputRange& rows, const TileBatch<Scalar>& right,
                        const InputRange& columns, bool same);
  void multiply_vectors_back(const TileBatch<Scalar>& left, const InputRange& rows,
                             const TileBatch<Scalar>& right, const InputRange& columns);
  /// One row of a tile.
  struct Row {
    Index left;
    Index number;  ///< Within the tile.
    Index same;    ///< Place of the left input among the columns, or -1.
  };
  void read_sources(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right, const InputRange& columns,
                    const Row& row, const StopRequest& stop);
  void positions_back(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                      const InputRange& columns, const Row& row, const StopRequest& stop);
  [[nodiscard]] PairSides<Scalar> sides(const TileBatch<Scalar>& left, const TileBatch<Scalar>& right,
                                        Index i, Index j, bool same) const;
  /// Whether L depends on a pair of the row at all.
  [[nodiscard]] bool counts(std::size_t column);

  const DerivativePlan& plan_;
  PointWalk<Scalar> points_;
  PointWalk<Scalar> self_points_;
  std::map<std::pair<Shape, Shape>, std::unique_ptr<PairWalk<Scalar>>> pairs_;
  std::map<Shape, std::unique_ptr<PairWalk<Scalar>>> selves_;
  std::vector<Matrix<Scalar>> products_;          ///< [plan.vector_inputs], of a tile.
  std::vector<Matrix<Scalar>> product_adjoints_;  ///< [plan.vector_inputs]
};

}  // namespace widelimit
