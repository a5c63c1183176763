#include "widelimit/gp/gram_source.hpp"

#include <doctest/doctest.h>

#include "problem.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

TEST_CASE("gram source: kernels in memory as matrices, operators and blocks of rows") {
  const KernelProblem p = make_problem(12, 5, 1, 1);
  GramResult<double> kernels;
  kernels.nngp = p.nngp;
  kernels.ntk = p.ntk;
  const auto source = gram_in_memory(std::move(kernels));
  CHECK(source->matrix("nngp").matrix() == p.nngp);
  CHECK(source->matrix("ntk").matrix() == p.ntk);
  const Matrix<double> x = random_matrix(12, 2, 3);
  CHECK(relative_difference(source->as_operator("ntk")->multiply(x), p.ntk * x) < 1e-14);
  CHECK(source->as_cross("nngp").block(2, 3) == p.nngp.middleRows(2, 3));
  // What is taken is given up.
  CHECK(source->take("ntk").matrix() == p.ntk);
  CHECK(source->matrix("ntk").matrix().size() == 0);
}
