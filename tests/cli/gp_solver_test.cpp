#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/smooth_problem.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/gp/solver_choice.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::write_smooth_problem;

namespace {

nlohmann::json predictions(const std::string& options, const std::string& amplitude = "--amplitude 2 ") {
  const TemporaryFolder folder;
  const auto result = run_program(
      "gp --network fcn --data sample --train 60 --validation 20 --test 20 --size 6 --precision double " +
      amplitude + "--no-report --no-pictures --out " + folder.string() + options);
  REQUIRE(result.code == 0);
  return nlohmann::json::parse(file_text(folder / "results.json")).at("results");
}

}  // namespace

TEST_CASE("gp: conjugate gradients predict what Cholesky factorizations do") {
  const nlohmann::json expected = predictions(" --regulariser 0.01 --solver cholesky");
  const nlohmann::json found = predictions(" --regulariser 0.01 --solver cg");
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i)
    for (const char* score : {"accuracy", "mean_squared_error", "log_loss"}) {
      CAPTURE(score);
      CHECK(found[i].at(score).get<double>() ==
            doctest::Approx(expected[i].at(score).get<double>()).epsilon(1e-8));
    }
}

TEST_CASE("gp: conjugate gradients fit the amplitudes that Cholesky factorizations do") {
  const nlohmann::json expected = predictions(" --regulariser 0.01 --solver cholesky", "");
  const nlohmann::json found = predictions(" --regulariser 0.01 --solver cg", "");
  // Probabilities differ: conjugate gradients leave no labels out, by which others are calibrated.
  for (std::size_t i = 0; i < 2; ++i)
    for (const char* number : {"amplitude", "mean_squared_error"}) {
      CAPTURE(number);
      CHECK(found.at(i).at(number).get<double>() ==
            doctest::Approx(expected.at(i).at(number).get<double>()).epsilon(1e-8));
    }
  CHECK(expected.at(1).at("amplitude").get<double>() != 1);
}

TEST_CASE("gp: conjugate gradients with kernels that a device makes in every pass") {
  const nlohmann::json expected = predictions(" --candidates 0.01,0.1 --solver cg");
  const nlohmann::json found = predictions(" --candidates 0.01,0.1 --solver cg --device pocl");
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found[i].at("regulariser") == expected[i].at("regulariser"));
    for (const char* score : {"accuracy", "mean_squared_error", "log_loss"}) {
      CAPTURE(score);
      CHECK(found[i].at(score).get<double>() ==
            doctest::Approx(expected[i].at(score).get<double>()).epsilon(1e-7));
    }
  }
  const auto explained =
      run_program("explain fcn:axes=0 --input 94 --inputs 200000 --solver cg --device pocl --measure 0");
  REQUIRE(explained.code == 0);
  CHECK(explained.output.find("    on the device ") != std::string::npos);
  CHECK(explained.output.find("inputs and states ") != std::string::npos);
}

TEST_CASE("gp: what the solvers do not serve is refused before anything is computed") {
  const std::string command = "gp --network fcn --data sample --train 20 --validation 10 --test 10 --size 6 ";
  const auto amplitude = run_program(command + "--solver cg --regulariser 1");
  REQUIRE(amplitude.code == 0);
  CHECK(amplitude.output.find("; the NTK's amplitude solves for all 20 inputs, 256 at a time: --amplitude A "
                              "spares that\n") != std::string::npos);
  const auto times = run_program(command + "--solver cg --amplitude 1 --time 2");
  CHECK(times.code != 0);
  CHECK(times.errors.find("cg knows networks after training only, no --time") != std::string::npos);
  const auto unknown = run_program(command + "--solver lu");
  CHECK(unknown.code != 0);
  CHECK(unknown.errors.find("--solver") != std::string::npos);
  const auto told = run_program(command + "--kernel nngp --solver cg");
  REQUIRE(told.code == 0);
  CHECK(told.output.find("\nsolver: cg, given (") != std::string::npos);
  const auto alone = run_program(command + "--kernel nngp --solver distributed");
  CHECK(alone.code != 0);
  CHECK(alone.errors.find("--solver distributed: the ranks of widelimit-mpi factorize together: mpirun -n N "
                          "widelimit-mpi gp ...") != std::string::npos);
  const auto nothing_to_choose = run_program(command + "--regulariser 0.1 --candidates 0.1,1");
  CHECK(nothing_to_choose.code != 0);
  CHECK(nothing_to_choose.errors.find("there is nothing to choose with --regulariser") != std::string::npos);
  const auto residual = run_program(command + "--residual 2");
  CHECK(residual.code != 0);
  CHECK(residual.errors.find("must be a number > 0 and < 1, got 2") != std::string::npos);
}

TEST_CASE("gp --solver: words in any case, and nothing else") {
  const std::string gp =
      "gp --network fcn --data sample --train 30 --validation 5 --test 5 --regulariser 0.1 --solver ";
  for (const char* word : {"cg", "CG", "Cholesky"}) CHECK(run_program(gp + word).code == 0);
  for (const char* word : {"1", "foo", "''"}) {
    const auto refused = run_program(gp + word);
    CHECK(refused.code == 2);
    CHECK(refused.errors.find("{cg,cholesky,distributed}") != std::string::npos);
  }
}

TEST_CASE("gp: conjugate gradients and Cholesky read their kernels from stores") {
  const TemporaryFolder stores;
  const std::string at_hand = predictions(" --solver cholesky --criterion mse --candidates 0.01,0.1").dump();
  const nlohmann::json expected = nlohmann::json::parse(at_hand);
  const std::string store = " --criterion mse --candidates 0.01,0.1 --store " + stores.string();
  const nlohmann::json factorized = predictions(store + " --solver cholesky");
  const nlohmann::json found = predictions(store + " --solver cg --residual 1e-11");
  REQUIRE(found.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(found[i].at("candidates").size() == 2);
    CHECK(found[i].at("passes").get<int>() > 1);
    CHECK(found[i].at("relative_residual").get<double>() <= 1e-11);
    CHECK_FALSE(expected[i].contains("passes"));
    for (const char* number : {"regulariser", "accuracy", "mean_squared_error", "log_loss"}) {
      CAPTURE(number);
      const double value = expected[i].at(number).get<double>();
      CHECK(factorized[i].at(number).get<double>() == value);
      CHECK(found[i].at(number).get<double>() == doctest::Approx(value).epsilon(1e-8));
    }
  }
}

TEST_CASE("gp --solver cg: candidates that stall are left out and said, and another one is chosen") {
  const TemporaryFolder folder;
  xt::xarray<double> x = xt::xarray<double>::from_shape({300, 3}),
                     held = xt::xarray<double>::from_shape({30, 3});
  xt::xarray<double> y = xt::xarray<double>::from_shape({300, 1}),
                     held_y = xt::xarray<double>::from_shape({30, 1});
  const auto number = [](std::size_t i, std::size_t k) {
    return std::sin(1.0 + 7.1 * static_cast<double>(i * 3 + k));
  };
  for (std::size_t i = 0; i < 300; ++i) {
    // Each input twice for the kernel, whose rounding is coarser: equal ones would be one input.
    for (std::size_t k = 0; k < 3; ++k) x(i, k) = number(i / 2, k) + 1e-10 * static_cast<double>(i % 2);
    y(i, 0) = x(i, 0) * x(i, 1) + 0.1 * number(i, 2);
  }
  for (std::size_t i = 0; i < 30; ++i) {
    for (std::size_t k = 0; k < 3; ++k) held(i, k) = number(1000 + i, k);
    held_y(i, 0) = held(i, 0) * held(i, 1);
  }
  data::write_npy(folder / "x_train.npy", x);
  data::write_npy(folder / "y_train.npy", y);
  for (const char* part : {"validation", "test"}) {
    data::write_npy(folder / ("x_" + std::string(part) + ".npy"), held);
    data::write_npy(folder / ("y_" + std::string(part) + ".npy"), held_y);
  }
  const auto result = run_program(
      "gp --network fcn:depth=3,axes=0 --data npy --precision double --kernel nngp --amplitude 1 --solver cg "
      "--path " +
      folder.string() + " --out " + (folder / "out").string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(result.output.find(
            "are left out: their relative residuals stall above the one asked for (give --candidates "
            "without them, or a larger --residual)") != std::string::npos);
  const auto found = nlohmann::json::parse(file_text(folder / "out/results.json"))["results"][0];
  CHECK(found["regulariser"].get<double>() > 1e-7);
  CHECK(found["candidates"][0]["unsolved"].get<std::string>().find(
            "the relative regulariser 1e-07 (lambda = ") != std::string::npos);
}

TEST_CASE("gp: of a float kernel without rank left, cholesky and cg choose the same regularisers") {
  const TemporaryFolder folder;
  const std::string gp = write_smooth_problem(folder.string());
  const auto regularisers = [&](const std::string& solver) {
    const auto result =
        run_program(gp + "--force --solver " + solver + " --out " + (folder / "out").string());
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    const auto results = nlohmann::json::parse(file_text(folder / "out/results.json")).at("results");
    return std::vector<double>{results[0]["regulariser"], results[1]["regulariser"]};
  };
  CHECK(regularisers("cholesky") == regularisers("cg"));
}

TEST_CASE("gp: what a condition number leaves of the digits is said") {
  const TemporaryFolder folder;
  const std::string gp = write_smooth_problem(folder.string()) + "--kernel nngp --precision double ";
  const std::string said = "which leaves ";
  const std::string one = gp.substr(0, gp.find("--criterion")) + "--kernel nngp --precision double ";
  const auto lost = run_program(one + "--regulariser 1e-12");
  CAPTURE(lost.output);
  REQUIRE(lost.code == 0);
  CHECK(lost.output.find("\nnngp: with the regulariser 1e-12 the kernel has a condition number of about ") !=
        std::string::npos);
  CHECK(lost.output.find(said) != std::string::npos);
  const auto kept = run_program(one + "--regulariser 1e-4 --out " + (folder / "out").string());
  REQUIRE(kept.code == 0);
  CHECK(kept.output.find(said) == std::string::npos);
  const double number =
      nlohmann::json::parse(file_text(folder / "out/results.json")).at("results")[0].at("condition_number");
  CHECK(number > 1e4);  // 600 inputs of one sign share an eigenvector.
  CHECK(number < 1e7);
}
