#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "widelimit/gp/cross_gram.hpp"
#include "widelimit/gp/kernel_operator.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/noise.hpp"

namespace widelimit::distributed {

/// Gives the tiles on and above the diagonal of a symmetric matrix, each to body(row, column of its first entry,
/// numbers): in the same order on all ranks, and the same numbers.
using TileBody = std::function<void(Index row, Index column, const Matrix<double>& numbers)>;
using EachTile = std::function<void(const TileBody& body)>;

/// A regression that all ranks hold together: DistributedRegression, for programs that are built without MPI too.
class RankRegression {
 public:
  virtual ~RankRegression() = default;

  [[nodiscard]] virtual double noise_variance() const = 0;
  [[nodiscard]] virtual double log_determinant() const = 0;  ///< Of K + lambda I.
  /// (K + lambda I)^-1 y, [n, outputs].
  [[nodiscard]] virtual const Matrix<double>& weights() const = 0;
  [[nodiscard]] virtual Matrix<double> mean(const gp::CrossGram& cross) const = 0;
  [[nodiscard]] virtual Vector<double> variance(const gp::CrossGram& cross,
                                                const Vector<double>& test_variances) const = 0;
  [[nodiscard]] virtual Vector<double> flow_variance(const gp::KernelOperator& nngp,
                                                     const gp::CrossGram& nngp_cross,
                                                     const gp::CrossGram& ntk_cross,
                                                     const Vector<double>& nngp_test_variances) const = 0;
  [[nodiscard]] virtual gp::LeaveOneOut leave_one_out(std::span<const Index> inputs) const = 0;
  [[nodiscard]] virtual gp::LeaveOneOut flow_leave_one_out(const gp::KernelOperator& nngp,
                                                           std::span<const Index> inputs) const = 0;
};

/// What the ranks of a program solve together. All call each function, in the same order and with the same arguments.
class RankSolver {
 public:
  virtual ~RankSolver() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// Sums over all ranks, in place.
  virtual void add_up(double* numbers, Index count) const = 0;
  /// Those of one rank on all.
  virtual void share(double* numbers, Index count, int from) const = 0;
  /// Throws on all ranks if `failure` is not empty on one.
  virtual void agree(const std::string& failure) const = 0;
  /// Why a factorization of n x n numbers is beyond these ranks; empty if it is not.
  [[nodiscard]] virtual std::string against_size(Index n) const = 0;
  /// With the amplitude 1. Errors of gp::Regression::fit(). All ranks see the same tiles.
  [[nodiscard]] virtual std::unique_ptr<RankRegression> factorize(const EachTile& gram,
                                                                  const Matrix<double>& targets,
                                                                  const gp::Noise& noise) const = 0;
};

}  // namespace widelimit::distributed
