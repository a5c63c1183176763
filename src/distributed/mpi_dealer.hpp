#pragma once

#include <mpi.h>

#include <memory>
#include <thread>

#include "distributed/rank_solver.hpp"
#include "distributed/tile_dealer.hpp"

namespace widelimit::distributed {

/// Deals tiles to the ranks of an MPI program by a counter in the memory of rank 0, which the others read and raise
/// without its help. An object lives between MPI_Init_thread() and MPI_Finalize().
class MpiDealer final : public TileDealer {
 public:
  /// Collective.
  MpiDealer();
  ~MpiDealer() override;
  MpiDealer(const MpiDealer&) = delete;
  MpiDealer& operator=(const MpiDealer&) = delete;

  [[nodiscard]] std::function<Index()> deal() override;
  void wait_for_all() override;
  [[nodiscard]] bool is_first() const override { return rank_ == 0; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int threads() const override { return threads_; }
  [[nodiscard]] Index sum(Index number) override;
  [[nodiscard]] const RankSolver* solver() const override { return solver_.get(); }

 private:
  /// Until all ranks are here. Sleeps meanwhile: others may need the processor.
  static void meet();
  /// Of the ranks of one machine, each has its share of its cores.
  static int share_of_cores();

  int rank_ = 0;
  int threads_ = 1;
  std::unique_ptr<RankSolver> solver_;  ///< Null where there is no ScaLAPACK.
  std::int64_t* counter_ = nullptr;
  MPI_Win window_ = MPI_WIN_NULL;
  std::jthread progress_;  ///< Of rank 0: over some networks the counter is reached only while it calls MPI.
};

}  // namespace widelimit::distributed
