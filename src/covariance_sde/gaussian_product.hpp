#pragma once

#include <Eigen/Core>
#include <Eigen/QR>
#include <algorithm>
#include <memory>
#include <utility>

#include "numerics/normal_matrix.hpp"

namespace widelimit::covariance_sde {

/// What a weight matrix sees of tokens x [m, n]: x = triangle^T basis^T, the columns of basis [n, k] orthonormal. With
/// half as many tokens as channels or more, whole weights cost no more: basis is empty then, and triangle is x^T.
struct ProductInput {
  explicit ProductInput(const Eigen::MatrixXd& x) : channels{x.cols()} {
    if (2 * x.rows() >= x.cols()) {
      triangle = x.transpose();
      return;
    }
    const Eigen::HouseholderQR<Eigen::MatrixXd> qr(x.transpose());
    basis = qr.householderQ() * Eigen::MatrixXd::Identity(x.cols(), x.rows());
    triangle = qr.matrixQR().topRows(x.rows()).triangularView<Eigen::Upper>();
  }

  Eigen::Index channels;
  Eigen::MatrixXd basis, triangle;
};

/// A standard normal matrix W [n, n'] of which only x W and g W^T are ever asked for, x first. Given x W, the rest of W
/// is still normal: with x = R^T Q^T the product x W = R^T Z is all that is known of it, and
///     g W^T = g Z^T Q^T + L Y (I - Q Q^T),  L L^T = g g^T,
/// for normal Z and Y of m rows: m (n + n') normals in place of n n', of the exact distribution.
class GaussianProduct {
 public:
  using Tokens = Eigen::MatrixXd;

  GaussianProduct(std::shared_ptr<const ProductInput> input, Eigen::Index columns,
                  numerics::RandomStream& stream)
      : input_{std::move(input)},
        draws_{numerics::normal_matrix<Tokens>(input_->triangle.rows(), columns, stream)} {}

  /// x W.
  [[nodiscard]] Tokens forward() const { return input_->triangle.transpose() * draws_; }

  /// g W^T for g [m, n'].
  [[nodiscard]] Tokens backward(const Tokens& g, numerics::RandomStream& stream) const {
    const Tokens& basis = input_->basis;
    if (basis.size() == 0) return g * draws_.transpose();
    // With g^T = Q' R' the root L is R'^T; its columns are no more than min(m, n').
    const Eigen::HouseholderQR<Tokens> qr(g.transpose());
    const Eigen::Index k = std::min(g.rows(), g.cols());
    const Tokens root = qr.matrixQR().topRows(k).triangularView<Eigen::Upper>();
    const Tokens rest = root.transpose() * numerics::normal_matrix<Tokens>(k, input_->channels, stream);
    return rest + (g * draws_.transpose() - rest * basis) * basis.transpose();
  }

  /// |x^T g|_F^2: of the gradient with respect to W, where g is that with respect to x W.
  [[nodiscard]] double squared_gradient(const Tokens& g) const {
    return (input_->triangle * g).squaredNorm();
  }

 private:
  std::shared_ptr<const ProductInput> input_;
  Tokens draws_;
};

}  // namespace widelimit::covariance_sde
