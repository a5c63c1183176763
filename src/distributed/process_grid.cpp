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

namespace {

/// body(first, count) for pieces that MPI's 32-bit counts can count.
template <typename Body>
void for_each_piece(Index count, Body body) {
  constexpr Index most = std::numeric_limits<int>::max() / 2;
  for (Index first = 0; first < count; first += most)
    body(first, static_cast<int>(std::min(most, count - first)));
}

}  // namespace

void ProcessGrid::add_up(double* numbers, Index count) const {
  for_each_piece(count, [&](Index first, int piece) {
    MPI_Allreduce(MPI_IN_PLACE, numbers + first, piece, MPI_DOUBLE, MPI_SUM, communicator_);
  });
}

void ProcessGrid::share(double* numbers, Index count, int from) const {
  for_each_piece(count, [&](Index first, int piece) {
    MPI_Bcast(numbers + first, piece, MPI_DOUBLE, from, communicator_);
  });
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
