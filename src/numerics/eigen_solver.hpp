#pragma once

#include <Eigen/Eigenvalues>

#include "widelimit/matrix.hpp"

/// Eigen's solver for symmetric matrices, which takes the compiler four seconds a type of matrix: those that several
/// files decompose are compiled once, in eigen_solver.cpp.
namespace Eigen {

extern template SelfAdjointEigenSolver<Matrix2d>& SelfAdjointEigenSolver<Matrix2d>::compute(
    const EigenBase<Matrix2d>&, int);
extern template SelfAdjointEigenSolver<MatrixXd>& SelfAdjointEigenSolver<MatrixXd>::compute(
    const EigenBase<MatrixXd>&, int);
extern template SelfAdjointEigenSolver<MatrixXd>& SelfAdjointEigenSolver<MatrixXd>::compute(
    const EigenBase<widelimit::Matrix<double>>&, int);
extern template SelfAdjointEigenSolver<widelimit::Matrix<double>>&
SelfAdjointEigenSolver<widelimit::Matrix<double>>::compute(const EigenBase<widelimit::Matrix<double>>&, int);

}  // namespace Eigen
