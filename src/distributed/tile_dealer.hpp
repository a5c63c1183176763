#pragma once

#include <functional>

#include "widelimit/network/shape.hpp"

namespace widelimit::distributed {

class RankSolver;

/// Where several processes compute one store together, each calling the same functions in the same order: who of them
/// gets which tile.
class TileDealer {
 public:
  virtual ~TileDealer() = default;

  /// Begins with the tiles of a store; see store::GramStore::compute().
  [[nodiscard]] virtual std::function<Index()> deal() = 0;
  /// Waits until all have theirs in the store.
  virtual void wait_for_all() = 0;
  /// Whether this is the process that does what is to be done once.
  [[nodiscard]] virtual bool is_first() const = 0;
  /// The number of this process, from 0.
  [[nodiscard]] virtual int rank() const = 0;
  /// Threads for each, where the user does not say.
  [[nodiscard]] virtual int threads() const = 0;
  /// "8 ranks, 2 threads each", and what they did together: a sum over all, to be called by all.
  [[nodiscard]] virtual Index sum(Index number) = 0;
  /// Solving with the memory of all; null where the program cannot.
  [[nodiscard]] virtual const RankSolver* solver() const = 0;
};

}  // namespace widelimit::distributed
