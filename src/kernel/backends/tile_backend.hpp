#pragma once

#include <functional>
#include <vector>

#include "kernel/backends/cpu/planes/input_state.hpp"
#include "kernel/backends/cpu/planes/plane.hpp"

namespace widelimit {

/// Inputs [begin, end) of a block.
template <typename Scalar>
struct StateRange {
  const StateBlock<Scalar>* block;
  Index begin;
  Index end;

  [[nodiscard]] Index size() const { return end - begin; }
};

/// Whether the two sides of a tile come from one batch: then a pair may be an input with itself, and of two
/// mirrored pairs only that with left <= right is computed.
enum class Batches { one, two };

/// The place of left input i of a tile on the right side, or -1. Both ranges count in the order of the batch, so that
/// in a tile on the diagonal a left input is also one of the right inputs.
template <typename Scalar>
[[nodiscard]] Index place_of_itself(Index i, const StateRange<Scalar>& right, Batches batches) {
  return batches == Batches::one && right.begin <= i && i < right.end ? i - right.begin : -1;
}

/// Some rows of a tile, each a left input with all right ones; `step` leads from one row to the next.
template <typename Scalar>
struct TileRows {
  Plane<Scalar> values;
  Index step;
};

/// What computes tiles of pairs: states of two blocks in, rows of NNGP and NTK out. Every thread has its own, because
/// buffers are reused from tile to tile.
template <typename Scalar>
class TileBackend {
 public:
  TileBackend() = default;
  TileBackend(const TileBackend&) = delete;
  TileBackend& operator=(const TileBackend&) = delete;
  virtual ~TileBackend() = default;

  /// Begins a tile. The inputs of a side have one shape. Between inputs of one batch, entries of mirrored pairs may
  /// have any values.
  virtual void begin(const StateRange<Scalar>& left, const StateRange<Scalar>& right, Batches batches) = 0;
  /// The most rows that rows() gives at once.
  [[nodiscard]] virtual Index rows_at_once() const = 0;
  /// The rows of left inputs [first, end), counted from the first one of the tile. They are valid until the next call.
  [[nodiscard]] virtual TileRows<Scalar> rows(Index first, Index end) = 0;

  using Visit = std::function<void(Index i, const Plane<Scalar>& value)>;
  /// visit(i, value) for every input of a range with itself.
  virtual void diagonal(const StateRange<Scalar>& inputs, const Visit& visit) = 0;

  /// Starts measuring the time of every node, if the backend can.
  virtual void start_timer() {}
  /// Adds what was measured.
  virtual void add_seconds(std::vector<double>& /*seconds_per_node*/) {}
};

}  // namespace widelimit
