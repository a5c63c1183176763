#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/backends/cpu/planes/tile.hpp"
#include "kernel/backends/tile_backend.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

struct GramPlan;

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

/// Has tiles of pairs computed by the backend of a plan, and writes their kernels, which may be rounded to another
/// type. Every thread has its own.
template <typename Scalar>
class PairWorker {
 public:
  /// `plan` must outlive the worker; `most`: the largest numbers of inputs on the sides of a tile.
  PairWorker(const GramPlan& plan, const TileSize& most, StopRequest stop);

  /// Starts measuring the time of every node.
  void start_timer() { backend_->start_timer(); }
  /// Adds what was measured.
  void add_seconds(std::vector<double>& seconds_per_node) { backend_->add_seconds(seconds_per_node); }

  /// Writes the entries of every pair of the tile, and for one batch those of the mirrored pairs. The inputs
  /// of a side have one shape. False if some entry is not finite.
  template <typename Result>
  [[nodiscard]] bool run(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches,
                         const TilePlace& place, const GramTarget<Result>& target);

  /// Writes the entries of inputs of one shape with themselves to a column. Several at once are for devices.
  template <typename Result>
  [[nodiscard]] bool run_diagonal(const StateRange<Scalar>& inputs, std::span<const Index> places,
                                  const GramTarget<Result>& column);

 private:
  /// False if some value is not finite.
  template <typename Result>
  [[nodiscard]] bool write(const Plane<Scalar>& values, Index first, Index row, const TilePlace& place,
                           const GramTarget<Result>& target) const;
  template <typename Result>
  void mirror_rows(std::size_t end, const TilePlace& place, const GramTarget<Result>& target);

  bool vectors_only_;
  std::unique_ptr<TileBackend<Scalar>> backend_;
  std::vector<Index> same_;   ///< [row]: its left input's place on the right side, or -1.
  std::size_t mirrored_ = 0;  ///< Rows of the tile whose mirrored entries are written.
};

}  // namespace widelimit
