#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "kernel/backends/cpu/planes/pair_layout.hpp"
#include "kernel/backends/cpu/planes/plane_step_executor.hpp"
#include "kernel/backends/cpu/planes/readout_sums.hpp"
#include "kernel/backends/cpu/planes/tile_work.hpp"
#include "kernel/backends/cpu/planes/workspace.hpp"
#include "kernel/step_timer.hpp"
#include "widelimit/stop_request.hpp"

namespace widelimit {

/// Executes the steps of a program on tiles of pairs, in a workspace of its own. Every thread has one for pairs, and
/// one for states.
template <typename Scalar>
class PlaneExecutor {
 public:
  /// The program must outlive the executor. Tiles have at most `most_pairs` pairs. Once `stop` asks for it, Cancelled
  /// is thrown between instructions, between pairs of a stage, and within stages.
  PlaneExecutor(const Program& program, const PairDemand& demand, Index most_pairs, StopRequest stop = {});

  /// Executes all steps, after which readout() gives the values of the readouts. All inputs of a side have one shape.
  /// The geometry is laid out again only if the shapes differ from those of the last tile.
  void run(const Tile<Scalar>& tile);

  /// Executes the steps on one input with itself, and records in `state`, which already has the features, what pairs
  /// will need. This is for executors with Purpose::state.
  void record_state(InputState<Scalar>& state);

  /// Value of a readout node for a pair of the last tile.
  struct Entry {
    Scalar nngp;
    Scalar ntk;
  };
  [[nodiscard]] Entry readout(NodeId node, Index pair) const;

  [[nodiscard]] StepTimer& timer() { return timer_; }

 private:
  /// What tiles of inputs of the same shapes share: the layout of a pair, and the chains of plane steps.
  struct Prepared {
    Shape left;
    Shape right;
    PairLayout pair;
    TileWork<Scalar> work;
    std::vector<std::unique_ptr<PlaneStepExecutor<Scalar>>> plane_steps;  ///< [step]; null for other steps.

    Prepared(PlaneExecutor& executor, const StateLayout& left_state, const StateLayout& right_state,
             const TileSize& size);
  };

  [[nodiscard]] TileWork<Scalar> make_work(const PairLayout& pair, const StateLayout& state,
                                           const TileSize& size);
  void prepare(const Tile<Scalar>& tile);
  void execute(const Tile<Scalar>& tile, InputState<Scalar>* recorded);

  const Program& program_;
  PairDemand demand_;
  StopRequest stop_;
  Workspace<Scalar> workspace_;
  ReadoutSums<Scalar> sums_;
  StepTimer timer_;
  std::optional<Prepared> prepared_;  ///< Made for the shapes of the last tile.
};

}  // namespace widelimit
