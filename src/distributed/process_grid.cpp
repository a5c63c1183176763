#include "distributed/process_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "distributed/scalapack.hpp"
#include "widelimit/error.hpp"

namespace widelimit::distributed {

GridShape GridShape::of(int ranks) {
  if (ranks < 1) throw ArgumentError(fmt::format("GridShape: expected at least one rank, got {}", ranks));
  int rows = 1;
  for (int candidate = 1; candidate * candidate <= ranks; ++candidate)
    if (ranks % candidate == 0) rows = candidate;
  return {rows, ranks / rows};
}

ProcessGrid::ProcessGrid(MPI_Comm communicator) : communicator_{communicator} {
  int ranks = 0;
  MPI_Comm_size(communicator_, &ranks);
  MPI_Comm_rank(communicator_, &rank_);
  shape_ = GridShape::of(ranks);
  const int handle = Csys2blacs_handle(communicator_);
  context_ = handle;
  Cblacs_gridinit(&context_, "Row", shape_.rows, shape_.columns);
  Cfree_blacs_system_handle(handle);
  int rows = 0, columns = 0;
  Cblacs_gridinfo(context_, &rows, &columns, &row_, &column_);
}

ProcessGrid::~ProcessGrid() { Cblacs_gridexit(context_); }

void ProcessGrid::add_up(double* numbers, Index count) const {
  constexpr Index most = std::numeric_limits<int>::max() / 2;
  for (Index first = 0; first < count; first += most)
    MPI_Allreduce(MPI_IN_PLACE, numbers + first, static_cast<int>(std::min(most, count - first)), MPI_DOUBLE,
                  MPI_SUM, communicator_);
}

double ProcessGrid::sum(double number) const {
  add_up(&number, 1);
  return number;
}

void ProcessGrid::agree(const std::string& failure) const {
  int first = failure.empty() ? ranks() : rank_;
  MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, communicator_);
  if (first == ranks()) return;
  int length = static_cast<int>(failure.size());
  MPI_Bcast(&length, 1, MPI_INT, first, communicator_);
  std::string text = failure;
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, first, communicator_);
  throw NumericalError(fmt::format("rank {}: {}", first, text));
}

}  // namespace widelimit::distributed
