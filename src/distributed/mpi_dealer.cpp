#include "distributed/mpi_dealer.hpp"

#include <algorithm>
#include <chrono>
#include <stop_token>

#include "widelimit/numerics/cores.hpp"

#ifdef WIDELIMIT_SCALAPACK
#include "distributed/mpi_solver.hpp"
#endif

namespace widelimit::distributed {

MpiDealer::MpiDealer() : threads_{share_of_cores()} {
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  const MPI_Aint bytes = rank_ == 0 ? sizeof *counter_ : 0;
  MPI_Win_allocate(bytes, sizeof *counter_, MPI_INFO_NULL, MPI_COMM_WORLD, &counter_, &window_);
  MPI_Win_lock_all(0, window_);
#ifdef WIDELIMIT_SCALAPACK
  solver_ = std::make_unique<MpiSolver>(threads_);
#endif
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (rank_ != 0 || provided < MPI_THREAD_MULTIPLE) return;
  progress_ = std::jthread([](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      int flag = 0;
      MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

MpiDealer::~MpiDealer() {
  if (progress_.joinable()) {
    progress_.request_stop();
    progress_.join();
  }
  MPI_Win_unlock_all(window_);
  MPI_Win_free(&window_);
}

std::function<Index()> MpiDealer::deal() {
  meet();
  if (rank_ == 0) {
    const std::int64_t zero = 0;
    std::int64_t before = 0;
    MPI_Fetch_and_op(&zero, &before, MPI_INT64_T, 0, 0, MPI_REPLACE, window_);
    MPI_Win_flush(0, window_);
  }
  meet();
  return [this]() -> Index {
    const std::int64_t one = 1;
    std::int64_t place = 0;
    MPI_Fetch_and_op(&one, &place, MPI_INT64_T, 0, 0, MPI_SUM, window_);
    MPI_Win_flush(0, window_);
    return place;
  };
}

void MpiDealer::wait_for_all() { meet(); }

Index MpiDealer::sum(Index number) {
  std::int64_t total = number;
  MPI_Allreduce(MPI_IN_PLACE, &total, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  return total;
}

void MpiDealer::meet() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int arrived = 0; arrived == 0;) {
    MPI_Test(&request, &arrived, MPI_STATUS_IGNORE);
    if (arrived == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int MpiDealer::share_of_cores() {
  MPI_Comm of_machine = MPI_COMM_NULL;
  int ranks = 1;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &of_machine);
  MPI_Comm_size(of_machine, &ranks);
  MPI_Comm_free(&of_machine);
  const int cores = numerics::machine_cores(), own = numerics::own_cores();
  // mpirun binds a rank to cores of its own, or to none.
  return own < cores ? std::max(1, std::min(own, (cores + ranks - 1) / ranks)) : std::max(1, cores / ranks);
}

}  // namespace widelimit::distributed
