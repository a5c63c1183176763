#include "widelimit/gp/fit.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include "problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/gram_source.hpp"
#include "widelimit/gp/kernel_solver.hpp"
#include "widelimit/gp/posterior.hpp"

namespace widelimit::gp {
namespace {

using gp_test::KernelProblem;
using gp_test::make_problem;
using gp_test::relative_difference;

GramSources sources_of(const KernelProblem& p) {
  const auto in_memory = [](const Matrix<double>& nngp, const Matrix<double>& ntk) {
    GramResult<double> kernels;
    kernels.nngp = nngp;
    kernels.ntk = ntk;
    return gram_in_memory(std::move(kernels));
  };
  GramSources grams;
  grams.train = in_memory(p.nngp, p.ntk);
  grams.test = in_memory(p.nngp_cross, p.ntk_cross);
  grams.test_variances = p.nngp_test.diagonal();
  return grams;
}

Problem numbers(const KernelProblem& p) { return {.targets = p.targets}; }

TEST_CASE("fit: a choice made before is the choice made in the fit") {
  const KernelProblem p = make_problem(24, 3, 2, 5);
  for (const char* kernel : {"nngp", "ntk"}) {
    Fitter at_once(numbers(p), {}, sources_of(p), direct_solver),
        in_steps(numbers(p), {}, sources_of(p), direct_solver);
    const Fit one = at_once.fit(kernel, {infinite_time});
    const Fit two = in_steps.fit(kernel, {infinite_time}, false, in_steps.select(kernel));
    REQUIRE(one.parts.size() == two.parts.size());
    REQUIRE(one.selections.size() == 2);
    for (std::size_t i = 0; i < one.parts.size(); ++i) {
      CHECK(one.parts[i].regulariser == two.parts[i].regulariser);
      CHECK(one.parts[i].amplitudes.isApprox(two.parts[i].amplitudes, 1e-12));
      CHECK(relative_difference(one.parts[i].posteriors.front()->mean(),
                                two.parts[i].posteriors.front()->mean()) < 1e-12);
    }
  }
}

TEST_CASE(
    "fit: a noise in the units of the targets leaves their scale, has the amplitude 1 and the normal law") {
  const KernelProblem p = make_problem(12, 3, 1, 7);
  FitOptions options;
  options.noise = AbsoluteNoise(0.3);
  Fitter fitter(numbers(p), options, sources_of(p), direct_solver);
  const Fit fitted = fitter.fit("nngp", {infinite_time});
  CHECK(fitter.scale().factors()(0) == 1);
  CHECK(fitter.scale().offsets()(0) == doctest::Approx(p.targets.mean()));
  CHECK(fitted.parts.front().amplitudes(0) == 1);
  CHECK(fitted.parts.front().posteriors.front()->lambda() == doctest::Approx(0.3).epsilon(1e-12));
  CHECK(fitted.law.is_normal());
  // Also beside an amplitude, which is the kernel's.
  options.amplitude = 3;
  Fitter louder(numbers(p), options, sources_of(p), direct_solver);
  const Fit loud = louder.fit("nngp", {infinite_time});
  CHECK(loud.parts.front().amplitudes(0) * loud.parts.front().posteriors.front()->lambda() ==
        doctest::Approx(0.3).epsilon(1e-12));
  Fitter relative(numbers(p), {}, sources_of(p), direct_solver);
  CHECK(!relative.fit("nngp", {infinite_time}).law.is_normal());
}

TEST_CASE("fit: posteriors are kept for new inputs where that is asked for, and predict the same") {
  const KernelProblem p = make_problem(15, 4, 1, 9);
  FitOptions options;
  options.noise = RelativeRegulariser(0.05);
  options.keeps_posteriors = true;
  Fitter fitter(numbers(p), options, sources_of(p), direct_solver);
  const Fit prior = fitter.fit("nngp", {infinite_time}, true);
  const auto kept = prior.parts.front().posteriors.front()->kept();
  REQUIRE(kept);
  CHECK(std::get<Regression>(*kept).mean(p.nngp_cross) == prior.parts.front().posteriors.front()->mean());
  const Fit trained = fitter.fit("ntk", {infinite_time, 2.0});
  for (std::size_t i = 0; i < 2; ++i) {
    const UnitPosterior& posterior = *trained.parts.front().posteriors[i];
    const auto flow = std::get<TrainedNetworks>(*posterior.kept());
    CHECK(flow.time == (i == 0 ? infinite_time : 2.0));
    CHECK(relative_difference(p.ntk_cross * flow.weights, posterior.mean()) < 1e-10);
  }
}

TEST_CASE("fit: known noise and weights are refused where they mean nothing") {
  const KernelProblem p = make_problem(10, 2, 1, 11);
  Problem weighted = numbers(p), known = numbers(p);
  weighted.weights = Vector<double>::Ones(10);
  known.noise_variances = Vector<double>::Ones(10);
  require_rows(weighted, "fit");
  require_fit(fit_request(weighted, {}, false), Door::cpp, "fit");
  CHECK_THROWS_WITH_AS(require_fit(fit_request(weighted, {}, true), Door::cpp, "fit"),
                       "fit: weights: they are for Bayesian regression: the kind bayesian", ArgumentError);
  FitOptions given;
  given.noise = RelativeRegulariser(0.1);
  CHECK_THROWS_WITH_AS(require_fit(fit_request(known, given, false), Door::cpp, "fit"),
                       "fit: noise_variances: the noise is known: leave out regulariser", ArgumentError);
  weighted.weights(3) = 0;
  CHECK_THROWS_WITH_AS(require_rows(weighted, "fit"), doctest::Contains("fit: "), ArgumentError);
}
}  // namespace
}  // namespace widelimit::gp
