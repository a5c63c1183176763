#include "widelimit/gp/unit_posterior.hpp"

#include <doctest/doctest.h>

#include <Eigen/Cholesky>

#include "problem.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

TEST_CASE("unit posterior: the evidence of outputs together and apart is that of regressions") {
  const KernelProblem p = make_problem(15, 1, 2, 4);
  const Regression regression = Regression::fit(p.nngp, p.targets, RelativeRegulariser(0.1));
  Matrix<double> noisy = p.nngp;
  noisy.diagonal().array() += 0.1 * p.nngp.diagonal().mean();
  const Eigen::LLT<Eigen::MatrixXd> factor{Eigen::MatrixXd(noisy)};
  const double determinant = 2 * Eigen::MatrixXd(factor.matrixL()).diagonal().array().log().sum();
  const Vector<double> forms = p.targets.cwiseProduct(regression.weights()).colwise().sum().transpose();
  const Vector<double> shared = Vector<double>::Constant(2, regression.amplitude());
  CHECK(log_evidence(forms, determinant, 15, shared) ==
        doctest::Approx(regression.log_marginal_likelihood()).epsilon(1e-10));
  const Vector<double> own = forms / 15;
  CHECK(log_evidence(forms, determinant, 15, own) ==
        doctest::Approx(regression.output(0, p.targets).log_marginal_likelihood() +
                        regression.output(1, p.targets).log_marginal_likelihood())
            .epsilon(1e-10));
}
