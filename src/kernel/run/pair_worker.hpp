#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernel/device/device_readouts.hpp"
#include "kernel/device/device_vectors.hpp"
#include "kernel/planes/plane_executor.hpp"
#include "kernel/points/point_executor.hpp"
#include "kernel/run/gram_plan.hpp"

namespace widelimit {

/// Inputs [begin, end) of a block.
template <typename Scalar>
struct StateRange {
  const StateBlock<Scalar>* block;
  Index begin;
  Index end;
};

/// Whether the two sides of a tile come from one batch: then a pair may be an input with itself, and of two
/// mirrored pairs only that with left <= right is computed.
enum class Batches { one, two };

/// Where kernel values go: row-major, `columns` numbers a row; null for a kernel that is not wanted.
template <typename Result>
struct GramTarget {
  Result* nngp;
  Result* ntk;
  Index columns;
};

/// Rows and columns of the result that belong to the inputs of a tile.
struct TilePlace {
  std::span<const Index> rows;
  std::span<const Index> columns;
};

/// Computes tiles of pairs from states to kernels, which may be rounded to another type. Every thread has its own,
/// because buffers are reused from tile to tile.
///
/// A tile passes through the positions as a whole. What comes after them is computed row by row: a row has one left
/// input and all right inputs of the tile, one number for each pair.
template <typename Scalar>
class PairWorker {
 public:
  /// `plan` must outlive the worker; `most`: the largest numbers of inputs on the sides of a tile.
  PairWorker(const GramPlan& plan, const TileSize& most, StopRequest stop);

  /// Starts measuring the time of every node.
  void start_timer();
  /// Adds what was measured.
  void add_seconds(std::vector<double>& seconds_per_node);

  /// Writes the entries of every pair of the tile, and for one batch those of the mirrored pairs. The inputs
  /// of a side have one shape. False if some entry is not finite.
  template <typename Result>
  [[nodiscard]] bool run(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches,
                         const TilePlace& place, const GramTarget<Result>& target);

  /// Writes the entries of inputs of one shape with themselves, on a device, to a column.
  template <typename Result>
  [[nodiscard]] bool run_diagonal(const StateRange<Scalar>& inputs, std::span<const Index> places,
                                  const GramTarget<Result>& column);

 private:
  using DeviceSide = typename DeviceVectors<Scalar>::Side;
  /// run() for inputs without positions on a device.
  template <typename Result>
  [[nodiscard]] bool run_on_device(const StateRange<Scalar>& left, const StateRange<Scalar>& right,
                                   Batches batches, const TilePlace& place, const GramTarget<Result>& target);
  /// An input with itself after all others of a launch; `number` is its pair there.
  [[nodiscard]] Plane<Scalar> points_of_itself(const InputState<Scalar>& input, Index number);
  void collect(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches);
  void multiply_inputs(bool symmetric);
  void multiply_inputs(std::size_t source, Index first_left, Index left_count, Index first_right);
  void fill_source(std::size_t number, Index row, Index same, const Plane<Scalar>& source);
  void take_multiples(std::size_t source, Index row, Index same, Scalar* values);
  [[nodiscard]] Scalar take_product(NodeId node, Index row, Index column);
  /// False if some value is not finite.
  template <typename Result>
  [[nodiscard]] bool write(const Plane<Scalar>& values, Index first, Index row, const TilePlace& place,
                           const GramTarget<Result>& target) const;
  template <typename Result>
  void mirror_rows(std::size_t end, const TilePlace& place, const GramTarget<Result>& target);
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
  PlaneExecutor<Scalar> planes_;
  PointExecutor<Scalar> points_;
  AlignedBuffer<Scalar> products_;    ///< [source][left][right] of a tile of vectors.
  AlignedBuffer<Scalar> deviations_;  ///< [source][right]
  std::optional<DeviceReadouts<Scalar>> device_;
  std::optional<DeviceVectors<Scalar>> device_vectors_;
  TileSize most_;
  StepTimer timer_;
  Tile<Scalar> tile_;
  std::vector<PointRow<Scalar>> rows_;
  std::size_t mirrored_ = 0;        ///< Rows of the tile whose mirrored entries are written.
  std::vector<Index> pair_number_;  ///< [left][right]: index into tile_.pairs, or -1 for mirrored pairs.
};

}  // namespace widelimit
