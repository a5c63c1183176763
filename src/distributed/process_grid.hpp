#pragma once

#include <mpi.h>

#include <string>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

/// Linear algebra over the ranks of MPI, by ScaLAPACK. Every function here is collective: all ranks of the communicator
/// call it, with the same arguments, and all throw if one does.
namespace widelimit::distributed {

/// Ranks as rows x columns, as square as their number allows.
struct GridShape {
  int rows;
  int columns;
  [[nodiscard]] static GridShape of(int ranks);
};

class ProcessGrid {
 public:
  explicit ProcessGrid(MPI_Comm communicator);
  ~ProcessGrid();
  ProcessGrid(const ProcessGrid&) = delete;
  ProcessGrid& operator=(const ProcessGrid&) = delete;

  [[nodiscard]] GridShape shape() const noexcept { return shape_; }
  [[nodiscard]] int row() const noexcept { return row_; }  ///< Of this rank.
  [[nodiscard]] int column() const noexcept { return column_; }
  [[nodiscard]] int context() const noexcept { return context_; }  ///< Of BLACS.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return shape_.rows * shape_.columns; }

  /// Sums over all ranks, in place.
  void add_up(double* numbers, Index count) const;
  [[nodiscard]] double sum(double number) const;
  /// Those of one rank on all.
  void share(double* numbers, Index count, int from) const;
  /// Throws on all ranks if `failure` is not empty on one: its own text there, or that of the lowest rank.
  void agree(const std::string& failure) const;

 private:
  MPI_Comm communicator_;
  GridShape shape_{};
  int rank_ = 0;
  int row_ = 0;
  int column_ = 0;
  int context_ = 0;
};

}  // namespace widelimit::distributed
