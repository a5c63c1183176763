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

TEST_CASE("gram source: the kernels of two batches are put together from their blocks") {
  const KernelProblem p = make_problem(12, 5, 1, 1);
  const auto block = [&](Index row, Index column, Index rows, Index columns, bool both = true) {
    GramResult<double> kernels;
    kernels.nngp = p.nngp.block(row, column, rows, columns);
    if (both) kernels.ntk = p.ntk.block(row, column, rows, columns);
    return kernels;
  };
  const auto joined = joined_gram(block(0, 0, 8, 8), block(8, 0, 4, 8), block(8, 8, 4, 4));
  CHECK(joined.nngp == p.nngp);
  CHECK(joined.ntk == p.ntk);
  CHECK(joined_cross(block(8, 0, 4, 8), block(8, 8, 4, 4)).ntk == p.ntk.bottomRows(4));
  // A kernel that is not there stays away.
  CHECK(
      joined_gram(block(0, 0, 8, 8, false), block(8, 0, 4, 8, false), block(8, 8, 4, 4, false)).ntk.size() ==
      0);
}
