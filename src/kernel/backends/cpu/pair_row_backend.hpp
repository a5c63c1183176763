#pragma once

#include <memory>
#include <vector>

#include "kernel/backends/cpu/pair_rows/pair_row_executor.hpp"
#include "kernel/backends/gram_plan.hpp"
#include "kernel/backends/tile_backend.hpp"
#include "kernel/backends/tile_readouts.hpp"

namespace widelimit {

/// Computes rows of pairs on the CPU, one number for each pair, from the products of vectors, from readouts on
/// features, or from the readouts of what has positions, which may be computed elsewhere.
///
/// A tile passes through the positions as a whole. What comes after them is computed row by row.
template <typename Scalar>
class PairRowBackend final : public TileBackend<Scalar> {
 public:
  /// `plan` must outlive this; `most`: the largest numbers of inputs on the sides of a tile. `readouts` is null for
  /// plans without positions.
  PairRowBackend(const GramPlan& plan, const TileSize& most, std::unique_ptr<TileReadouts<Scalar>> readouts,
                 StopRequest stop);

  void begin(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches) override;
  [[nodiscard]] Index rows_at_once() const override { return pair_rows_.rows_at_once(); }
  [[nodiscard]] TileRows<Scalar> rows(Index first, Index end) override;
  /// The positions of several inputs are computed together, in one launch of a device.
  void diagonal(const StateRange<Scalar>& inputs, const typename TileBackend<Scalar>::Visit& visit) override;
  void start_timer() override;
  void add_seconds(std::vector<double>& seconds_per_node) override;

 private:
  [[nodiscard]] std::vector<StepTimer*> timers();
  void collect(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches);
  /// An input with itself after all others of a launch; `number` is its pair there.
  [[nodiscard]] Plane<Scalar> pair_row_of_itself(const InputState<Scalar>& input, Index number);
  void multiply_inputs(bool symmetric);
  void multiply_inputs(std::size_t source, Index first_left, Index left_count, Index first_right);
  void fill_source(std::size_t number, Index row, Index same, const Plane<Scalar>& source);
  void take_multiples(std::size_t source, Index row, Index same, Scalar* values);
  [[nodiscard]] Scalar take_product(NodeId node, Index row, Index column);
  /// The products of one left input with the right inputs, in a tile of vectors.
  [[nodiscard]] Scalar* products(std::size_t source, Index row) {
    return products_.data() + (static_cast<Index>(source) * most_.left + row) * padded(most_.right);
  }
  /// The standard deviations of the right inputs, in a tile of vectors.
  [[nodiscard]] Scalar* deviations(std::size_t source) {
    return deviations_.data() + static_cast<Index>(source) * padded(most_.right);
  }
  [[nodiscard]] Index columns() const { return static_cast<Index>(tile_.right.size()); }

  const GramPlan& plan_;
  std::unique_ptr<TileReadouts<Scalar>> readouts_;
  PairRowExecutor<Scalar> pair_rows_;
  AlignedBuffer<Scalar> products_;    ///< [source][left][right] of a tile of vectors.
  AlignedBuffer<Scalar> deviations_;  ///< [source][right]
  TileSize most_;
  StepTimer timer_;
  Tile<Scalar> tile_;
  std::vector<PairRow<Scalar>> rows_;
  std::vector<Index> pair_number_;  ///< [left][right]: index into tile_.pairs, or -1 for mirrored pairs.
};

}  // namespace widelimit
