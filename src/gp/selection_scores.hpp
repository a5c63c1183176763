#pragma once

#include <optional>
#include <vector>

#include "gp/linear_algebra.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/matrix.hpp"

/// How regularisers do, from one eigendecomposition for all.
namespace widelimit::gp {

struct SpectralGram {
  SymmetricEigen eigen;
  double mean_diagonal;
  double error;  ///< Of the Gram matrix, see gram_error().
};

/// All NaN.
[[nodiscard]] RegulariserScore no_scores();

struct SpectralValidation {
  Matrix<double> cross;
  Vector<double> variances;  ///< Empty: not known.
  Matrix<double> targets;

  SpectralValidation(Matrix<double> k, Vector<double> prior, Matrix<double> y)
      : cross{std::move(k)}, variances{std::move(prior)}, targets{std::move(y)} {}
};

/// Of Regression.
class RegressionScores {
 public:
  /// Those of `lambdas`; all but the optional ones must outlive this.
  RegressionScores(const SpectralGram& gram, const Matrix<double>& targets, std::vector<double> lambdas,
                   std::optional<SpectralValidation> validation, bool leave_one_out);

  /// Of lambda number i.
  [[nodiscard]] RegulariserScore of(std::size_t i) const;

 private:
  void add_validation_scores(RegulariserScore& score, std::size_t i, double amplitude) const;
  [[nodiscard]] double leave_one_out(std::size_t i, double amplitude) const;
  [[nodiscard]] Vector<double> inverse(std::size_t i) const;
  [[nodiscard]] auto columns(const Matrix<double>& side_by_side, std::size_t i) const {
    return side_by_side.middleCols(static_cast<Eigen::Index>(i) * projected_.cols(), projected_.cols());
  }

  const SpectralGram& gram_;
  std::vector<double> lambdas_;
  std::optional<SpectralValidation> validation_;
  Matrix<double> projected_;          ///< Targets times eigenvectors.
  Matrix<double> weights_;            ///< (K + lambda I)^-1 y for all lambdas, side by side.
  Matrix<double> means_;              ///< Of the validation inputs, side by side.
  Matrix<double> cross_squares_;      ///< Squares of their covariances with eigenvectors.
  Matrix<double> inverse_diagonals_;  ///< Of (K + lambda I)^-1, one lambda a row; empty if not wanted.
};

struct SpectralFlowValidation {
  Matrix<double> nngp_cross;
  Matrix<double> ntk_cross;
  Vector<double> variances;
  Matrix<double> targets;

  SpectralFlowValidation(Matrix<double> k, Matrix<double> t, Vector<double> prior, Matrix<double> y)
      : nngp_cross{std::move(k)},
        ntk_cross{std::move(t)},
        variances{std::move(prior)},
        targets{std::move(y)} {}
};

/// Of GradientFlow at infinite time, with the amplitude of leave-one-out residuals.
class FlowScores {
 public:
  FlowScores(const SpectralGram& ntk, const Matrix<double>& nngp, const Matrix<double>& targets,
             std::vector<double> lambdas, std::optional<SpectralFlowValidation> validation, bool densities);

  [[nodiscard]] RegulariserScore of(std::size_t i) const;

 private:
  [[nodiscard]] LeaveOneOut leave_one_out(double lambda, const Vector<double>& growth) const;
  void add_validation_scores(RegulariserScore& score, double lambda, const Vector<double>& growth,
                             std::optional<double> amplitude) const;

  const SpectralGram& ntk_;
  std::vector<double> lambdas_;
  std::optional<SpectralFlowValidation> validation_;  ///< Cross Gram matrices times eigenvectors.
  Matrix<double> projected_;                          ///< Targets times eigenvectors.
  Matrix<double> nngp_;  ///< In the eigenvectors of the NTK; empty if no densities are wanted.
};

}  // namespace widelimit::gp
