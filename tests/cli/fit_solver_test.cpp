// widelimit fit --solver cg: a model of conjugate gradients goes through a folder. PoCL is a device wherever the tests
// run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::testing::fit_solver_test {
namespace {

/// Arrays of a smooth function; validation data if asked for.
void write_arrays(const TemporaryFolder& folder, bool validation) {
  const auto write_set = [&](const std::string& name, std::size_t count, double phase) {
    xt::xarray<double> x = xt::xarray<double>::from_shape({count, 3}),
                       y = xt::xarray<double>::from_shape({count});
    for (double& value : x) value = std::sin(phase += 1.1);
    for (std::size_t i = 0; i < count; ++i) y(i) = x(i, 0) * x(i, 1) + x(i, 2);
    data::write_npy(folder / ("x_" + name + ".npy"), x);
    data::write_npy(folder / ("y_" + name + ".npy"), y);
  };
  write_set("train", 60, 0.1);
  if (validation) write_set("validation", 12, 0.4);
  write_set("test", 9, 0.7);
}

std::string fit_with(const TemporaryFolder& folder, const std::string& model, const std::string& more) {
  return "fit --network fcn:axes=0 --precision double --data npy --path " + folder.string() + " --model " +
         (folder / model).string() + " " + more;
}

xt::xarray<double> predicted(const TemporaryFolder& folder, const std::string& model,
                             const std::string& array, const std::string& more = "") {
  const std::string out = (folder / (model + "-out")).string();
  const ProgramResult result =
      run_program("predict --model " + (folder / model).string() + " --x " +
                  (folder / "x_test.npy").string() + " --force --out " + out + " " + more);
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const bool is_iterative = result.output.find("by conjugate gradients") != std::string::npos;
  CHECK(is_iterative == (model != "direct"));
  return data::read_npy<double>(std::filesystem::path(out) / array);
}

void check_fails(const ProgramResult& result, const std::string& text) {
  CAPTURE(result.errors);
  CHECK(result.code != 0);
  CHECK(result.errors.find(text) != std::string::npos);
}

double distance(const xt::xarray<double>& a, const xt::xarray<double>& b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a.flat(i) - b.flat(i)));
  return largest;
}

TEST_CASE("fit --solver cg: the regulariser, and the predictions after a folder, are those of cholesky") {
  const TemporaryFolder folder;
  write_arrays(folder, true);
  for (const std::string kernel : {"--kernel nngp ", "--kernel ntk "}) {
    CAPTURE(kernel);
    const ProgramResult direct = run_program(fit_with(folder, "direct", kernel + "--criterion mse --refit")),
                        iterated = run_program(
                            fit_with(folder, "cg", kernel + "--solver cg --residual 1e-12 --refit")),
                        on_device = run_program(fit_with(
                            folder, "device", kernel + "--solver cg --residual 1e-12 --refit --device pocl"));
    for (const ProgramResult* result : {&direct, &iterated, &on_device}) {
      CAPTURE(result->errors);
      REQUIRE(result->code == 0);
      const std::string chosen = "chosen by mse among 19; fitted again with the validation data";
      CHECK(result->output.find(chosen) != std::string::npos);
      CHECK(result->output.substr(result->output.find("regulariser "), 20) ==
            direct.output.substr(direct.output.find("regulariser "), 20));
    }
    CHECK(iterated.output.find("by conjugate gradients") != std::string::npos);
    CHECK(iterated.output.find("leave-one-out") == std::string::npos);
    for (const char* array : {"mean.npy", "standard_deviation.npy"}) {
      const xt::xarray<double> expected = predicted(folder, "direct", array);
      CHECK(distance(predicted(folder, "cg", array), expected) < 1e-7);
      CHECK(distance(predicted(folder, "cg", array, "--device pocl"), expected) < 1e-7);
      CHECK(distance(predicted(folder, "device", array), expected) < 1e-7);
      CHECK(distance(predicted(folder, "device", array, "--device pocl --samples 2"), expected) < 1e-7);
    }
  }
}

TEST_CASE("fit --solver cg: what it cannot do is refused with the option and what to give") {
  const TemporaryFolder folder;
  write_arrays(folder, false);
  const auto fit = [&](const std::string& more) { return run_program(fit_with(folder, "model", more)); };
  check_fails(fit("--solver cg"),
              "--solver: cg chooses the regulariser on validation data, and there are none: give "
              "--validation N or files of them, --regulariser, or take --solver cholesky");
  check_fails(fit("--solver cg --criterion loo"),
              "--solver: cg chooses regularisers by accuracy or mean squared error on validation data alone");
  check_fails(fit("--solver cg --criterion evidence"),
              "--solver: cg chooses regularisers by accuracy or mean squared error");
  check_fails(fit("--solver cg --kernel ntk --time 3 --regulariser 1"),
              "cg knows networks after training only");
  check_fails(fit("--solver distributed"),
              "--solver: a model keeps the factor of its matrix, which ranks share among them");
  CHECK(run_program("fit --help").output.find("--solver cholesky|cg|distributed") != std::string::npos);
  check_fails(fit("--residual 1e-6"), "is for --solver cg");
  CHECK(!std::filesystem::exists(folder / "model"));
  CHECK(fit("--solver cg --regulariser 0.1").code == 0);
}

TEST_CASE("gp and fit --solver cg: more outputs than inputs are refused by the option") {
  const TemporaryFolder folder;
  for (const char* set : {"train", "test"}) {
    xt::xarray<double> x = xt::xarray<double>::from_shape({4, 3}), y = xt::xarray<double>::from_shape({4, 5});
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = std::sin(1.1 * static_cast<double>(i));
    for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = std::cos(2.3 * static_cast<double>(i));
    data::write_npy(folder / (std::string("x_") + set + ".npy"), x);
    data::write_npy(folder / (std::string("y_") + set + ".npy"), y);
  }
  const std::string refused =
      "cg solves for no more outputs than there are training inputs: take --solver cholesky";
  const std::string gp = "gp --network fcn:axes=0 --data npy --targets numbers --regulariser 0.1 --path " +
                         folder.string() + " --solver ";
  const std::string targets = "--targets numbers --regulariser 0.1 --solver ";
  check_fails(run_program(gp + "cg"), refused);
  check_fails(run_program(fit_with(folder, "model", targets + "cg")), "--solver: " + refused);
  CHECK(run_program(gp + "cholesky").code == 0);
  CHECK(run_program(fit_with(folder, "model", targets + "cholesky")).code == 0);
}

TEST_CASE("explain --solver cg: the memory of a fit, with and without a matrix") {
  const auto runs = [](const std::string& more) {
    const ProgramResult result =
        run_program("explain fcn:axes=0 --input 94 --inputs 50000 --kernel nngp --measure 0 --json " + more);
    REQUIRE(result.code == 0);
    return nlohmann::json::parse(result.output).at("runs");
  };
  const auto fit_of = [](const nlohmann::json& all, const std::string& command) {
    for (const auto& run : all)
      if (run.at("command") == command) return run;
    FAIL("no " << command);
    return nlohmann::json();
  };
  const nlohmann::json held = fit_of(runs("--solver cg"), "fit --solver cg"),
                       device = fit_of(runs("--solver cg --device pocl"), "fit --solver cg"),
                       direct = fit_of(runs(""), "fit");
  CHECK(held.at("memory").at("kernels") > 4.0 * 50000 * 50000 * 0.99);
  CHECK(held.at("peak_bytes") < direct.at("peak_bytes"));
  CHECK(device.at("memory").at("kernels") == 0);
  CHECK(device.at("device_bytes") > 94.0 * 4 * 50000);
}

}  // namespace
}  // namespace widelimit::testing::fit_solver_test
