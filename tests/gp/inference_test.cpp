#include "widelimit/gp/inference.hpp"

#include <doctest/doctest.h>

#include "problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

std::unique_ptr<GramSource> kernels_in_memory(const Matrix<double>& nngp, const Matrix<double>& ntk) {
  GramResult<double> kernels;
  kernels.nngp = nngp;
  kernels.ntk = ntk;
  return gram_in_memory(std::move(kernels));
}

std::vector<KernelPrediction> inferred(const Problem& p, const InferenceOptions& options,
                                       const std::stop_token& stop = {}) {
  GramSources grams;
  grams.train = kernels_in_memory(p.nngp, p.ntk);
  grams.test = kernels_in_memory(p.nngp_cross, p.ntk_cross);
  grams.test_variances = p.nngp_test.diagonal();
  const std::optional<Matrix<double>> truth = random_matrix(p.nngp_cross.rows(), p.targets.cols(), 8);
  return infer({TargetKind::numbers, p.targets, nullptr, truth}, options, std::move(grams), direct_solver,
               stop);
}

}  // namespace

TEST_CASE("inference: numbers are standardised, and predictions come back in their units") {
  Problem p = make_problem(30, 6, 2, 3);
  const InferenceOptions options{.times = {1.5}};
  const auto before = inferred(p, options);
  REQUIRE(before.size() == 3);
  CHECK(before[0].name == "nngp");
  CHECK(before[2].name == "ntk_time0");
  CHECK(before[0].selections.size() == 2);
  CHECK(before[2].selections.empty());
  p.targets = (50 * p.targets).array() + 7000;
  const auto after = inferred(p, options);
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(relative_difference((after[i].mean.array() - 7000) / 50, before[i].mean) < 1e-8);
    CHECK(relative_difference(after[i].variance / 2500, before[i].variance) < 1e-8);
    CHECK(after[i].scores->mean_squared_error > 1e6);
  }
  CHECK(after[0].selections[1].scores[12].leave_one_out ==
        doctest::Approx(before[0].selections[1].scores[12].leave_one_out + std::log(50)).epsilon(1e-8));
}

TEST_CASE("inference: targets as they are, with a given regulariser, are a Regression") {
  const Problem p = make_problem(20, 4, 1, 6);
  InferenceOptions options{.kernels = Kernels::nngp, .regulariser = 0.05};
  options.targets_as_they_are = true;
  const auto found = inferred(p, options);
  const Regression expected = Regression::fit(p.nngp, p.targets, RelativeRegulariser(0.05));
  CHECK(found[0].mean == expected.mean(p.nngp_cross));
  CHECK(found[0].variance.col(0) == expected.variance(p.nngp_cross, p.nngp_test.diagonal()));
  CHECK(*found[0].log_marginal_likelihood == expected.log_marginal_likelihood());
}

TEST_CASE("inference: what means nothing is refused, and a stop is heard") {
  CHECK_THROWS_WITH_AS(require_criterion(Criterion::accuracy, TargetKind::numbers),
                       doctest::Contains("choose by loo"), ArgumentError);
  require_criterion(Criterion::accuracy, TargetKind::classes);
  Matrix<double> targets = random_matrix(5, 2, 1);
  targets.col(1).setConstant(3);
  CHECK_THROWS_WITH_AS(require_varying_targets(targets, TargetKind::numbers, false, "give one"),
                       doctest::Contains("of output 1 (from 0) are all 3"), ArgumentError);
  require_varying_targets(targets, TargetKind::numbers, true, "give one");
  for (const double size : {1e-200, 1e200})
    CHECK_THROWS_WITH_AS(
        require_varying_targets(size * random_matrix(5, 1, 1), TargetKind::numbers, false, "give one"),
        doctest::Contains("whose square leaves the range of double: give them in other units"),
        ArgumentError);
  std::stop_source source;
  source.request_stop();
  CHECK_THROWS_AS((void)inferred(make_problem(10, 2, 1, 2), {}, source.get_token()), Cancelled);
}
