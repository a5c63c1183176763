#include "widelimit/specialization/order_parameters.hpp"

#include <doctest/doctest.h>

#include "support.hpp"
#include "widelimit/error.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;

TEST_CASE("order parameters: S is the Gram matrix of what lies outside the spikes") {
  numerics::RandomStream random(1);
  const Matrix<double> k_star = random_matrix(2, 9, random), outside = random_matrix(3, 9, random);
  // Gram-Schmidt against both spikes, by hand.
  const Vector<double> first = k_star.row(0).transpose().normalized();
  Vector<double> second = k_star.row(1).transpose();
  second = (second - first * first.dot(second)).normalized();
  const Matrix<double> orthogonal =
      outside - outside * (first * first.transpose() + second * second.transpose());
  const Matrix<double> k = orthogonal + random_matrix(3, 2, random) * k_star;
  const OrderParameters order = order_parameters(k, k_star);
  CHECK(distance(order.S, orthogonal * orthogonal.transpose()) < 1e-13);
  CHECK(distance(order.r * order.r, order.S) < 1e-13);
  CHECK(distance(order.m_whitened * order.m_whitened.transpose() + order.S, order.q) < 1e-13);
  CHECK(distance(order.m, k * k_star.transpose()) < 1e-15);
}

TEST_CASE("order parameters: the root of S, whose small negative eigenvalues are rounding") {
  const Matrix<double> S{{2.0, 1.0}, {1.0, 2.0}}, root = overlap_root(S);
  CHECK((root * root - S).cwiseAbs().maxCoeff() < 1e-14);
  CHECK(overlap_root(Matrix<double>{{1.0, 0.0}, {0.0, -1e-7}})(1, 1) == 0);
  CHECK_THROWS_AS((void)overlap_root(Matrix<double>{{1.0, 0.0}, {0.0, -1e-5}}), NumericalError);
}

TEST_CASE("order parameters: dependent spikes and wrong shapes are rejected") {
  numerics::RandomStream random(2);
  const Matrix<double> k = random_matrix(2, 3, random);
  Matrix<double> k_star = random_matrix(2, 3, random);
  CHECK(message_of([&] { (void)order_parameters(k, k_star); }).empty());
  k_star.row(1) = 2 * k_star.row(0);
  CHECK_THROWS_AS((void)order_parameters(k, k_star), NumericalError);
  CHECK(message_of([&] {
          (void)order_parameters(k, k_star);
        }).find("the 2 spikes must be linearly independent") != std::string::npos);
  CHECK_THROWS_AS((void)order_parameters(k, random_matrix(4, 3, random)), NumericalError);
  CHECK(message_of([&] { (void)order_parameters(k, random_matrix(2, 4, random)); }) ==
        "order_parameters: k_star must be 2 x 3, got 2 x 4");
}

TEST_CASE("cosine similarity: of vectors, and a head of length 0") {
  Matrix<double> m(2, 2);
  m << 3, 0, 1, 1;
  CHECK(cosine_similarity(m, Matrix<double>::Zero(2, 2))(0, 1) == doctest::Approx(std::sqrt(0.5)));
  Matrix<double> S = Matrix<double>::Zero(2, 2);
  S(1, 1) = 2;
  CHECK(cosine_similarity(m, S)(0, 1) == doctest::Approx(0.5));
  m.row(0).setZero();
  CHECK(message_of([&] { (void)cosine_similarity(m, S); }) ==
        "cosine_similarity: head 0 has length 0, so its direction is undefined");
}
