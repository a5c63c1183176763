#include "widelimit/propagation/simulated_phase.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace widelimit;
using namespace widelimit::propagation;

TEST_CASE("simulated phase: theory and networks of every point, those of the functions of one") {
  SimulatedPhaseTask task;
  task.transformer.parameters.tokens = 6;
  task.transformer.depth = 2;
  task.angle = AngleMeasure::one_block;
  task.sampling = {.width = 8, .networks = 4, .seed = 3, .threads = 1, .progress = {}, .stop = {}};
  Index told = 0;
  task.sampling.progress = [&](Index done, Index total) {
    told = done;
    CHECK(total == 16);
  };
  const Axis x = evenly_spaced(Coordinate::alpha, 0.3, 0.6, 2),
             y = evenly_spaced(Coordinate::sigma_w, 1, 2, 2);
  const auto points = simulated_phase(task, x, y);
  REQUIRE(points.size() == 4);
  CHECK(told == 16);
  // Rows of y from below: the second point is the second of x.
  Parameters second = task.transformer.parameters;
  second.alpha_A = second.alpha_M = x.values[1];
  second.sigma_w = y.values[0];
  CHECK(points[1].angle.theory == one_block_exponent(BlockMap(second), 1, 1 - task.c0));
  CHECK(points[1].gradient.theory == exponent(Exponent::gradient, second, {.depth = 2}));
  CHECK(points[1].angle.z() ==
        (points[1].angle.networks.value - points[1].angle.theory) / points[1].angle.networks.standard_error);
  // Every point has networks of its own, the same on any number of threads.
  task.sampling.threads = 2;
  const auto again = simulated_phase(task, x, y);
  for (std::size_t k = 0; k < points.size(); ++k) {
    CHECK(again[k].angle.networks.value == points[k].angle.networks.value);
    CHECK(again[k].gradient.networks.standard_error == points[k].gradient.networks.standard_error);
  }
  const Axis same = {Coordinate::alpha, {0.3, 0.3}};
  const auto twice = simulated_phase(task, same, y);
  CHECK(twice[0].angle.networks.value != twice[1].angle.networks.value);
  CHECK(twice[0].angle.theory == twice[1].angle.theory);
}
