#include "widelimit/gp/conjugate_gradients.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <stop_token>

#include "gp/problem.hpp"
#include "widelimit/gp/not_positive_definite.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

Matrix<double> solved_by_eigen(Matrix<double> k, double lambda, const Matrix<double>& b) {
  k.diagonal().array() += lambda;
  return Eigen::LLT<Eigen::MatrixXd>(k).solve(b);
}

/// Counts what is asked of it.
class CountingOperator final : public KernelOperator {
 public:
  explicit CountingOperator(const Matrix<double>& gram) : gram_{gram} {}
  [[nodiscard]] Index size() const override { return gram_.size(); }
  [[nodiscard]] Matrix<double> multiply(const Matrix<double>& x) const override {
    ++passes;
    return gram_.multiply(x);
  }
  [[nodiscard]] Vector<double> diagonal() const override { return gram_.diagonal(); }
  mutable int passes = 0;

 private:
  MatrixOperator<double> gram_;
};

}  // namespace

TEST_CASE("conjugate gradients: all regularisers and outputs agree with Cholesky factorizations to 1e-8") {
  const KernelProblem p = make_problem(300, 1, 10, 81);
  const std::vector<double> lambdas = {0.1, 1, 100};
  const MatrixOperator<double> gram(p.ntk);
  for (const Index columns : {0, 7, 30}) {
    CAPTURE(columns);
    const ShiftedSolutions found = solve_shifted(
        gram, p.targets, lambdas, {.relative_residual = 1e-11, .preconditioner_columns = columns});
    REQUIRE(found.solutions.size() == lambdas.size());
    for (std::size_t i = 0; i < lambdas.size(); ++i) {
      CAPTURE(lambdas[i]);
      const Matrix<double> expected = solved_by_eigen(p.ntk, lambdas[i], p.targets);
      CHECK(relative_difference(found.solutions[i], expected) < 1e-8);
      const Matrix<double> residual =
          p.targets - p.ntk * found.solutions[i] - lambdas[i] * found.solutions[i];
      const double largest =
          (residual.colwise().norm().array() / p.targets.colwise().norm().array()).maxCoeff();
      CHECK(largest <= 1.01e-11);
      CHECK(found.relative_residuals[i] == doctest::Approx(largest).epsilon(0.2));
    }
  }
}

TEST_CASE("conjugate gradients: preconditioning and shared passes save passes") {
  const KernelProblem p = make_problem(400, 1, 4, 82);
  const auto passes = [&](const std::vector<double>& lambdas, Index columns) {
    const CountingOperator gram(p.ntk);
    const int told = solve_shifted(gram, p.targets, lambdas, {.preconditioner_columns = columns}).passes;
    CHECK(told == gram.passes);
    return told;
  };
  const int plain = passes({0.05}, 0), preconditioned = passes({0.05}, 40);
  CHECK(preconditioned < 0.75 * plain);
  CHECK(passes({0.05, 0.5, 5}, 40) <= preconditioned + 2);
}

TEST_CASE("conjugate gradients: float, tiles and dependent, zero and many right-hand sides") {
  const KernelProblem p = make_problem(130, 1, 3, 83);
  Matrix<double> b(130, 5);
  b << p.targets, 2 * p.targets.col(0), Vector<double>::Zero(130);
  const Matrix<float> rounded = p.ntk.cast<float>();
  const auto check = [&](const KernelOperator& gram, const Matrix<double>& k) {
    const ShiftedSolutions found = solve_shifted(gram, b, {0.1});
    CHECK(relative_difference(found.solutions[0], solved_by_eigen(k, 0.1, b)) < 1e-8);
    CHECK(found.solutions[0].col(4).isZero(0));
  };
  check(MatrixOperator<float>(rounded), rounded.cast<double>());
  int asked = 0;
  const TileOperator tiles(130, 48, [&](Index row, Index rows, Index column, Index columns) {
    CHECK(row <= column);
    ++asked;
    return Matrix<double>(p.ntk.block(row, column, rows, columns));
  });
  check(tiles, p.ntk);
  CHECK(asked % 3 == 0);
  CHECK((tiles.diagonal() - p.ntk.diagonal()).isZero(0));
  const Matrix<double> one = Matrix<double>::Identity(130, 130);
  CHECK(relative_difference(tiles.multiply(one), p.ntk) < 1e-14);
  CHECK(relative_difference(solve_shifted(tiles, one, {1}).solutions[0], solved_by_eigen(p.ntk, 1, one)) <
        1e-8);
  CHECK(solve_shifted(tiles, Matrix<double>::Zero(130, 2), {1}).solutions[0].isZero(0));
}

TEST_CASE("conjugate gradients: what cannot be solved says so") {
  const KernelProblem p = make_problem(60, 1, 2, 84);
  const MatrixOperator<double> gram(p.ntk);
  Matrix<double> indefinite = p.ntk;
  indefinite.diagonal().array() -= 0.5;
  CHECK_THROWS_AS((void)solve_shifted(MatrixOperator<double>(indefinite), p.targets, {0.01}),
                  NotPositiveDefinite);
  try {
    (void)solve_shifted(gram, p.targets, {1e-6}, {.most_passes = 3, .preconditioner_columns = 0});
    FAIL("three passes cannot be enough");
  } catch (const NotConverged& error) {
    CHECK(error.relative_residual() > 1e-10);
    CHECK(std::string(error.what()).find("after 3 passes over the 60 x 60 Gram matrix") != std::string::npos);
  }
  CHECK_THROWS_AS((void)solve_shifted(gram, p.targets, {1e-9}, {.relative_residual = 1e-17}), NotConverged);
  std::stop_source source;
  source.request_stop();
  CHECK_THROWS_AS((void)solve_shifted(gram, p.targets, {1}, {.stop = source.get_token()}), Cancelled);
}

TEST_CASE("conjugate gradients: arguments that do not fit") {
  const KernelProblem p = make_problem(60, 1, 2, 85);
  const MatrixOperator<double> gram(p.ntk);
  CHECK_THROWS_WITH_AS((void)solve_shifted(gram, p.targets, {1}, {.preconditioner_columns = 7}),
                       "solve_shifted: preconditioner_columns must be 0 to n / 10 = 6, got 7", ArgumentError);
  CHECK_THROWS_WITH_AS((void)solve_shifted(gram, p.targets, {1}, {.relative_residual = 1}),
                       "solve_shifted: relative_residual must be in (0, 1), got 1", ArgumentError);
  CHECK_THROWS_WITH_AS((void)solve_shifted(gram, p.targets, {}),
                       "solve_shifted: there must be a lambda, got none", ArgumentError);
  CHECK_THROWS_AS((void)solve_shifted(gram, p.targets, {-1}), ArgumentError);
  CHECK_THROWS_AS((void)solve_shifted(gram, p.targets.topRows(59), {1}), ArgumentError);
  Matrix<double> hole = p.ntk;
  hole(3, 2) = NAN;
  CHECK_THROWS_WITH_AS(
      MatrixOperator<double>{hole},
      doctest::Contains("MatrixOperator: the Gram matrix must be finite and symmetric, but entry "
                        "(3, 2) is nan and entry (2, 3) is 0."),
      ArgumentError);
}

TEST_CASE("conjugate gradients: below the rounding errors of float, the message says what would do") {
  const Matrix<double> x = random_matrix(80, 5, 91);
  const Matrix<double> k = x * x.transpose();  // Of rank 5: all other eigenvalues are errors.
  const Matrix<float> rounded = k.cast<float>();
  const Matrix<double> b = random_matrix(80, 2, 92);
  for (const double lambda : {1e-9, 1e-7}) {
    CAPTURE(lambda);
    try {
      (void)solve_shifted(MatrixOperator<float>(rounded), b, {lambda}, {.most_passes = 100});
      FAIL("float cannot carry this");
    } catch (const NumericalError& error) {
      const std::string text = error.what();
      CAPTURE(text);
      CHECK(text.find("whose entries are float, are not small compared with lambda: take a relative "
                      "regulariser of ") != std::string::npos);
      CHECK(text.find("or compute K in double") != std::string::npos);
    }
  }
  Matrix<double> indefinite = k;
  indefinite.diagonal().array() -= 2;
  CHECK_THROWS_WITH_AS((void)solve_shifted(MatrixOperator<double>(indefinite), b, {0.1}),
                       doctest::Contains("look for the fault in the kernel"), NotPositiveDefinite);
  int heard = 0;
  const auto found = solve_shifted(MatrixOperator<double>(k), b, {0.1},
                                   {.progress = [&heard](int passes, double) { heard = passes; }});
  CHECK(heard > 0);
  CHECK(heard < found.passes);
}
