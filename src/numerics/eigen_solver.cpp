#include "numerics/eigen_solver.hpp"

namespace Eigen {

template SelfAdjointEigenSolver<Matrix2d>& SelfAdjointEigenSolver<Matrix2d>::compute(
    const EigenBase<Matrix2d>&, int);
template SelfAdjointEigenSolver<MatrixXd>& SelfAdjointEigenSolver<MatrixXd>::compute(
    const EigenBase<MatrixXd>&, int);
template SelfAdjointEigenSolver<MatrixXd>& SelfAdjointEigenSolver<MatrixXd>::compute(
    const EigenBase<widelimit::Matrix<double>>&, int);
template SelfAdjointEigenSolver<widelimit::Matrix<double>>&
SelfAdjointEigenSolver<widelimit::Matrix<double>>::compute(const EigenBase<widelimit::Matrix<double>>&, int);

}  // namespace Eigen
