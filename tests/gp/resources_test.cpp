#include "widelimit/gp/resources.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

constexpr double n = 10'000, matrix = n * n * 8;

Workload of(Work work, Kernels kernels, std::size_t entry_bytes = 4) {
  return {.work = work,
          .needs = {.inputs = 10'000, .entry_bytes = entry_bytes, .kernels = kernels, .finite_times = false}};
}

MemoryRoom room_of(double bytes) { return {.memory = bytes, .address_space = {}}; }

double share_of(const ResourcePlan& plan, const char* what) {
  const auto item = std::find_if(plan.peak.items.begin(), plan.peak.items.end(),
                                 [&](const MemoryItem& one) { return one.what == what; });
  return item == plan.peak.items.end() ? 0 : item->bytes;
}

TEST_CASE("resources: Gram matrices take their entries") {
  const ResourcePlan both = plan_resources(of(Work::kernels, Kernels::both), Solver::cholesky, room_of(24e9));
  CHECK(both.fits());
  CHECK(both.advice.empty());
  CHECK(share_of(both, "kernels") == matrix);
  CHECK(both.disk_bytes == matrix);
  CHECK(both.peak_bytes() < 1.05 * matrix);
  const ResourcePlan one =
      plan_resources(of(Work::kernels, Kernels::ntk, 8), Solver::cholesky, room_of(24e9));
  CHECK(share_of(one, "kernels") == matrix);
  Workload wide = of(Work::kernels, Kernels::nngp);
  wide.columns = 500;
  CHECK(share_of(plan_resources(wide, Solver::cholesky, room_of(24e9)), "kernels") == n * 500 * 4);
}

TEST_CASE("resources: the peak of a prediction is where both kernels are held twice") {
  const ResourcePlan both =
      plan_resources(of(Work::prediction, Kernels::both), Solver::cholesky, room_of(24e9));
  CHECK(both.peak.name == "choice of the NTK's regulariser");
  // As computed, in float, and widened.
  CHECK(share_of(both, "kernels") == matrix);
  CHECK(share_of(both, "factorization") == 2 * matrix);
  Workload given = of(Work::prediction, Kernels::nngp);
  given.needs.chooses = false;
  const ResourcePlan factor = plan_resources(given, Solver::cholesky, room_of(24e9));
  CHECK(share_of(factor, "kernels") == matrix / 2);
  CHECK(share_of(factor, "factorization") == matrix);
}

TEST_CASE(
    "resources: a device that multiplies without the matrix holds inputs and vectors, and the host no "
    "kernels") {
  Workload work = of(Work::prediction, Kernels::both);
  work.needs.outputs = 2;
  work.needs.candidates = 10;
  work.needs.test = 500;
  work.plan = Plan();
  work.plan->device_input_bytes = 400;
  const ResourcePlan plan = plan_resources(work, Solver::conjugate_gradients, room_of(24e9));
  CHECK(share_of(plan, "kernels") == 0);
  CHECK(share_of(plan, "widened rows") == 0);
  REQUIRE(plan.on_device.items.size() == 3);
  CHECK(plan.on_device.items[0].bytes == 400 * (n + 500));
  CHECK(plan.on_device.items[1].bytes == 2 * 8 * n * 20);
  CHECK(plan.on_device.bytes() < 0.5 * matrix);
  // The matrix is somewhere: in memory where it is factorized, or in a store.
  CHECK(share_of(plan_resources(work, Solver::cholesky, room_of(24e9)), "kernels") > 0);
  CHECK(plan_resources(work, Solver::cholesky, room_of(24e9)).on_device.items.empty());
  work.needs.in_store = true;
  CHECK(plan_resources(work, Solver::conjugate_gradients, room_of(24e9)).on_device.items.empty());
}

TEST_CASE("resources: a store takes disk in place of memory") {
  Workload stored = of(Work::kernels, Kernels::both);
  stored.needs.in_store = true;
  stored.store_side = 1000;
  const ResourcePlan plan = plan_resources(stored, Solver::cholesky, room_of(24e9));
  // Ten rows of tiles, those on and above the diagonal.
  CHECK(plan.disk_bytes == 55 * 2 * 4e6);
  CHECK(plan.peak_bytes() < 0.1 * matrix);
  stored.store_side = 3000;  // tiles at the ends are files as large as the others
  CHECK(plan_resources(stored, Solver::cholesky, room_of(24e9)).disk_bytes == 10 * 2 * 4 * 9e6);
}

TEST_CASE("resources: what does not fit is refused with what does") {
  const Workload work = of(Work::prediction, Kernels::both);
  const ResourcePlan plan = plan_resources(work, Solver::cholesky, room_of(2e9));
  CHECK_FALSE(plan.fits());
  REQUIRE(plan.advice.size() >= 2);
  // Conjugate gradients hold both kernels and no factor.
  CHECK(plan.advice.front().starts_with("--solver cg ("));
  CHECK(std::any_of(plan.advice.begin(), plan.advice.end(), [](const std::string& one) {
    return one.starts_with("--store DIR --solver cg (") && one.find("of disk)") != std::string::npos;
  }));
  Workload fewer = work;
  fewer.needs.inputs = std::stol(plan.advice.back());
  CHECK(plan.advice.back().find(" inputs or fewer") != std::string::npos);
  CHECK(plan_resources(fewer, Solver::cholesky, room_of(2e9)).fits());
  ++fewer.needs.inputs;
  CHECK_FALSE(plan_resources(fewer, Solver::cholesky, room_of(2e9)).fits());
  CHECK_THROWS_WITH_AS(
      require_resources("gp", plan, work),
      doctest::Contains("gp: 10000 inputs do not fit: 2.53 GiB of memory are needed (choice of the NTK's "
                        "regulariser: factorization 1.49 GiB, kernels 763 MiB, "),
      ArgumentError);
  CHECK_NOTHROW(require_resources("gp", plan_resources(work, Solver::cholesky, room_of(4e9)), work));
}

TEST_CASE("resources: a mean over mirror images holds a part beside the sum") {
  Workload flipped = of(Work::kernels, Kernels::both);
  flipped.needs.flip = true;
  const ResourcePlan plan = plan_resources(flipped, Solver::cholesky, room_of(24e9));
  CHECK(share_of(plan, "mirror images") == matrix);
  flipped.work = Work::prediction;
  CHECK(plan_resources(flipped, Solver::conjugate_gradients, room_of(24e9)).peak.name == "kernels");
}

TEST_CASE("resources: new inputs meet those of the training, and functions of them each other") {
  Workload work = of(Work::new_inputs, Kernels::nngp);
  work.needs.test = 20'000;
  const ResourcePlan alone = plan_resources(work, Solver::cholesky, room_of(24e9));
  // In float as they are computed, and in double.
  CHECK(alone.peak.name == "kernels in double");
  CHECK(share_of(alone, "kernels") == n * 20'000 * (4 + 8));
  work.drawn = {.posterior = 5, .jointly = true, .prior = 0};
  const ResourcePlan jointly = plan_resources(work, Solver::cholesky, room_of(8e9));
  CHECK(jointly.peak.name == "root of their covariance");
  CHECK(share_of(jointly, "covariances") == 4 * 4 * matrix);
  CHECK_FALSE(jointly.fits());
  REQUIRE(jointly.advice.size() == 2);
  CHECK(jointly.advice[0].starts_with("--marginal ("));
  CHECK(jointly.advice[1].ends_with(" inputs or fewer at a time"));
  Workload fewer = work;
  fewer.needs.test = std::stol(jointly.advice[1]);
  CHECK(plan_resources(fewer, Solver::cholesky, room_of(8e9)).fits());
  CHECK_THROWS_WITH_AS(require_resources("predict", jointly, work),
                       doctest::Contains("predict: 20000 inputs do not fit: "), ArgumentError);
}

TEST_CASE("resources: a limit of the address space counts what threads reserve") {
  const MemoryRoom room{.memory = 24e9, .address_space = 1e9, .process = 1e8, .thread_reserve = 5e8};
  CHECK(room.left() == 1e9);
  const Workload work = of(Work::kernels, Kernels::both, 8);
  CHECK_THROWS_WITH_AS(
      require_resources("gram", plan_resources(work, Solver::cholesky, room), work),
      doctest::Contains("954 MiB of address space (ulimit -v; 477 MiB are reserved for threads) can be had; "
                        "take --precision float"),
      ArgumentError);
}

TEST_CASE("resources: times are those of the kernels and of the solver's operations") {
  Workload work = of(Work::prediction, Kernels::nngp);
  work.plan.emplace();
  work.plan->pair = {.seconds = 1e-6, .processor_seconds = 2e-6};
  work.plan->threads = 2;
  work.plan->state_memory_bytes = std::size_t{1} << 30;
  const ResourcePlan plan = plan_resources(work, Solver::cholesky, room_of(24e9), 1e10);
  CHECK(plan.kernel_cost.seconds == doctest::Approx(1e-6 * n * (n + 1) / 2));
  CHECK(plan.kernel_cost.processor_seconds == doctest::Approx(1e-6 * n * (n + 1)));
  // A reduction of four factorizations, a factorization, and what comes with n^2.
  CHECK(plan.solver_cost.seconds > 5 * n * n * n / 3 / 1e10);
  CHECK(plan.solver_cost.seconds < 10 * n * n * n / 3 / 1e10);
  const ResourcePlan pass = plan_resources(work, Solver::conjugate_gradients, room_of(24e9), 1e10);
  CHECK(pass.solver_cost_is_of_a_pass);
  CHECK(pass.solver_cost.seconds == doctest::Approx(2 * n * n * 19 / 1e10));
  work.needs.flip = true;
  CHECK(plan_resources(work, Solver::cholesky, room_of(24e9)).kernel_cost.seconds ==
        doctest::Approx(1e-6 * n * (n + 1)));
}

TEST_CASE("resources: the speed of factorizations is measured") {
  const double flops = measure_flops(1);
  CHECK(flops > 1e7);
  CHECK(flops < 1e13);
}

}  // namespace
}  // namespace widelimit::gp
