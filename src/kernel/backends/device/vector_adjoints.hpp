#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "kernel/backends/device/adjoint_source.hpp"
#include "opencl/session.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit {

/// How the derivatives of a network without positions are computed on a device, or on several equal ones.
class AdjointPlan {
 public:
  /// Throws DeviceError, naming the layers, if devices cannot compute them.
  AdjointPlan(std::vector<std::shared_ptr<opencl::Session>> sessions, const Program& program, bool in_double,
              bool with_ntk, const std::vector<bool>& steep);

  [[nodiscard]] const AdjointSource& source() const { return source_; }
  /// The device of the next thread: they are dealt in turn.
  [[nodiscard]] opencl::Session& next_session() const { return *sessions_[dealt_++ % sessions_.size()]; }

 private:
  std::vector<std::shared_ptr<opencl::Session>> sessions_;
  AdjointSource source_;
  mutable std::atomic<std::size_t> dealt_ = 0;
};

/// A tile of pairs of vectors: its sides' variances, and what is known of its pairs.
template <typename Scalar>
struct VectorTile {
  const Matrix<Scalar>& left_variances;      ///< [stage, row]
  const Matrix<Scalar>& right_variances;     ///< [stage, column]
  std::span<const Matrix<Scalar>> products;  ///< [source][row, column]
  const Matrix<Scalar>* nngp = nullptr;      ///< Cotangents [row, column]; null for zeros.
  const Matrix<Scalar>* ntk = nullptr;
  /// The pairs (i, i + diagonal) are inputs with themselves, whose derivatives are not computed.
  std::optional<Index> diagonal = {};
};

/// The adjoints of a tile.
template <typename Scalar>
struct VectorTileAdjoints {
  Matrix<Scalar> left_variances;   ///< [stage, row], summed over the columns.
  Matrix<Scalar> right_variances;  ///< [stage, column], summed over the rows.
  bool is_near_ties = false;       ///< Entries were too near to a tie for float (steep_stages.hpp).
};

/// What a thread computes of the backward pass of pairs of vectors on a device: tiles, one after the other.
template <typename Scalar>
class VectorAdjoints {
 public:
  /// The plan must outlive this.
  explicit VectorAdjoints(const AdjointPlan& plan);

  /// Computes a tile. `products` receives the adjoints of its products, [source][row, column]. Throws DeviceError.
  VectorTileAdjoints<Scalar> run(const VectorTile<Scalar>& tile, std::span<Matrix<Scalar>> products);

 private:
  void run_pairs(const VectorTile<Scalar>& tile, Index rows, Index columns);
  Matrix<Scalar> sums(const char* kernel, Index rows, Index columns, Index of_side);
  /// Takes memory and copies matrices there, one behind the other.
  void write(opencl::Buffer& to, std::span<const Matrix<Scalar>* const> matrices);

  const AdjointPlan& plan_;
  opencl::Session& session_;
  opencl::Queue queue_;
  opencl::Buffer left_, right_, products_, cotangents_, product_adjoints_, variance_adjoints_, near_, sums_;
  std::vector<Scalar> packed_;
};

}  // namespace widelimit
