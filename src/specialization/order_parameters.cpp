#include "widelimit/specialization/order_parameters.hpp"

#include <algorithm>

#include "numerics/eigen_solver.hpp"
#include "specialization/checks.hpp"
#include "widelimit/numerics/symmetric_root.hpp"

namespace widelimit::specialization {

namespace {

constexpr double relative_rank = 1e-12;

}  // namespace

OrderParameters order_parameters(const Matrix<double>& k, const Matrix<double>& k_star) {
  constexpr const char* where = "order_parameters";
  require_at_least(where, "heads (rows of k)", k.rows(), 1);
  require_at_least(where, "spikes (rows of k_star)", k_star.rows(), 1);
  require_shape(where, "k_star", k_star, k_star.rows(), k.cols());
  require_finite(where, "k", k);
  require_finite(where, "k_star", k_star);
  return order_parameters(Matrix<double>(k * k.transpose()), Matrix<double>(k * k_star.transpose()),
                          Matrix<double>(k_star * k_star.transpose()));
}

OrderParameters order_parameters(const Matrix<double>& q, const Matrix<double>& m, const Matrix<double>& p) {
  const Index heads = m.rows(), features = m.cols();
  require_shape("order_parameters", "q", q, heads, heads);
  require_shape("order_parameters", "p", p, features, features);
  require_symmetric("order_parameters", "q", q, overlap_rounding);
  require_symmetric("order_parameters", "p", p, overlap_rounding);
  // Rounding may have left p a little asymmetric.
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(Eigen::MatrixXd((p + p.transpose()) / 2));
  if (solver.info() != Eigen::Success)
    throw NumericalError("order parameters: the eigenvalue iteration did not converge");
  const auto& lambda = solver.eigenvalues();
  if (!(lambda[0] > relative_rank * lambda[features - 1]))
    throw NumericalError(fmt::format(
        "order_parameters: p = k* k*^T is singular (eigenvalues from {} to {}); the {} spikes must be "
        "linearly independent",
        lambda[0], lambda[features - 1], features));
  OrderParameters result{m, q, p, {}, {}, m * solver.operatorInverseSqrt()};
  // S = q - m p^-1 m^T, from whitened overlaps m p^(-1/2).
  result.S = q - result.m_whitened * result.m_whitened.transpose();
  result.r = overlap_root(result.S);
  return result;
}

Matrix<double> overlap_root(const Matrix<double>& S) { return numerics::symmetric_root(S, overlap_rounding); }

Matrix<double> cosine_similarity(const Matrix<double>& m, const Matrix<double>& S) {
  require_shape("cosine_similarity", "S", S, m.rows(), m.rows());
  const Matrix<double> q = m * m.transpose() + S;
  require_directions("cosine_similarity", q.diagonal());
  const Vector<double> inverse = q.diagonal().cwiseSqrt().cwiseInverse();
  return inverse.asDiagonal() * q * inverse.asDiagonal();
}

}  // namespace widelimit::specialization
