#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using widelimit::testing::ProgramResult;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace {

/// Under a limit of the address space. BLAS repeats a failed allocation for ever, so a hang shows as the code
/// 124 of `timeout`.
ProgramResult run_limited(int kibibytes, const std::string& arguments) {
  return run_script("ulimit -v " + std::to_string(kibibytes) + "; timeout 20 \"$WIDELIMIT\" " + arguments);
}

void check_ends_clearly(const ProgramResult& result) {
  CAPTURE(result.errors);
  if (result.code == 0) return;
  CHECK(result.code == 1);
  const bool is_plan = result.errors.find(" of address space (ulimit -v; ") != std::string::npos;
  CHECK((is_plan || result.errors.find("out of ") != std::string::npos));
}

}  // namespace

TEST_CASE("memory limits: the program ends with a message where BLAS would get no buffer") {
  // Below, not even the libraries can be loaded.
  for (int limit = 120'000; limit <= 600'000; limit += 40'000) {
    CAPTURE(limit);
    check_ends_clearly(run_limited(limit, "--version"));
  }
  // Where the libraries and one buffer hardly fit: whether the program or BLAS asks first is a matter of chance.
  for (int limit = 210'000; limit <= 228'000; limit += 1'000) {
    CAPTURE(limit);
    check_ends_clearly(run_limited(limit, "--version"));
  }
  CHECK(run_limited(4'000'000, "--version").code == 0);
  const auto refused = run_limited(120'000, "--version");
  if (refused.code == 0) return;  // one core: OpenBLAS starts no thread
  CHECK(refused.errors.find("widelimit: out of address space: OpenBLAS") == 0);
  CHECK(run_script("ulimit -v 120000; OPENBLAS_NUM_THREADS=1 \"$WIDELIMIT\" --version").code == 0);
}

TEST_CASE("memory limits: so does a Gram matrix") {
  const TemporaryFolder folder;
  widelimit::data::write_npy(folder / "x.npy", xt::xarray<double>(xt::ones<double>({20, 5})));
  const std::string end =
      " --force --x " + (folder / "x.npy").string() + " --out " + (folder / "out").string();
  // Every limit twice: which of the program's threads asks for memory first is a matter of chance.
  for (int limit = 200'000; limit <= 900'000; limit += 30'000)
    for (const char* arguments : {"gram fcn", "gram fcn", "gram fcn --threads 6"}) {
      CAPTURE(limit);
      CAPTURE(arguments);
      check_ends_clearly(run_limited(limit, arguments + end));
    }
  CHECK(run_limited(8'000'000, "gram fcn --threads 2" + end).code == 0);
}

TEST_CASE(
    "memory limits: preprocessing comes after the limits are checked, and what they advise can be done") {
  const std::string gp = "gp --network fcn --data sample --train 40 --test 10 --size 6 --preprocess zca";
  for (const char* threads : {" --threads 1", " --threads 2", ""}) {
    CAPTURE(threads);
    const auto refused = run_limited(300'000, gp + threads);
    CAPTURE(refused.errors);
    REQUIRE(refused.code == 1);
    CHECK(refused.errors.find("widelimit: out of address space: BLAS and the C library reserve ") == 0);
    CHECK(refused.errors.find(std::string(threads) == " --threads 1" ? "256 MiB for 1 thread,"
                                                                     : " MiB for ") != std::string::npos);
    const auto at = refused.errors.find("raise the limit to ");
    REQUIRE(at != std::string::npos);
    const int enough = std::stoi(refused.errors.substr(at + std::string("raise the limit to ").size()));
    // Beside what threads reserve, data and matrices take some of it.
    const auto raised = run_limited(enough + 150'000, gp + threads);
    CAPTURE(raised.errors);
    CHECK(raised.code == 0);
  }
  for (const char* command : {"fit --network fcn --data sample --train 20 --test 5 --size 6 --model ",
                              "gram fcn --x x.npy --out "}) {
    const TemporaryFolder folder;
    const auto refused = run_limited(300'000, command + (folder / "out").string());
    CHECK(refused.code == 1);
    CHECK(refused.errors.find("out of address space: BLAS and the C library reserve ") != std::string::npos);
  }
}

TEST_CASE("memory limits: predict checks them before it reads the model, and before it computes") {
  const TemporaryFolder folder;
  const auto data = folder.path(), model = data / "model";
  constexpr std::size_t count = 2000;
  xt::xarray<float> x = xt::zeros<float>({count, std::size_t{1}});
  for (std::size_t i = 0; i < count; ++i) x(i, 0) = std::sin(static_cast<float>(i * i));
  widelimit::data::write_npy(data / "x_train.npy", x);
  widelimit::data::write_npy(data / "y_train.npy", x);
  widelimit::data::write_npy(data / "x.npy", xt::xarray<float>(xt::ones<float>({60'000, 1})));
  REQUIRE(widelimit::testing::run_program(
              "fit --network fcn:axes=0 --data npy --targets numbers --regulariser 0.1 "
              "--threads 1 --path " +
              data.string() + " --model " + model.string())
              .code == 0);
  const std::string predict = "predict --threads 1 --model " + model.string() + " --x " +
                              (data / "x.npy").string() + " --out " + (data / "out").string();
  // A limit that has room for the arena of the thread that watches signals. Below, chance decides whether it gets one,
  // and what the message asks for may be short of it.
  const auto no_threads = run_limited(420'000, predict);
  CAPTURE(no_threads.errors);
  CHECK(no_threads.code == 1);
  CHECK(
      no_threads.errors.find("out of address space: BLAS and the C library reserve 256 MiB for 1 thread,") !=
      std::string::npos);
  const auto at = no_threads.errors.find("raise the limit to ");
  REQUIRE(at != std::string::npos);
  const int enough = std::stoi(no_threads.errors.substr(at + std::string("raise the limit to ").size()));
  // The factor has 31 MiB, which are there twice while they are read.
  const auto no_model = run_limited(enough + 40'000, predict);
  CAPTURE(no_model.errors);
  CHECK(no_model.code == 1);
  CHECK(no_model.errors.find("model: reading the model takes 61.") != std::string::npos);
  // 60,000 new inputs meet 2,000: .9 GB in double.
  const auto no_kernels = run_limited(enough + 300'000, predict);
  CAPTURE(no_kernels.errors);
  CHECK(no_kernels.code == 1);
  CHECK(no_kernels.errors.find("widelimit: predict: 60000 inputs do not fit: ") == 0);
  const auto least = no_kernels.errors.find("; take ");
  REQUIRE(least != std::string::npos);
  CHECK(no_kernels.errors.find(" inputs or fewer at a time") != std::string::npos);
  // What the message advises can be done.
  const auto fewer = std::stoul(no_kernels.errors.substr(least + std::string("; take ").size()));
  widelimit::data::write_npy(data / "x.npy", xt::xarray<float>(xt::ones<float>({fewer, std::size_t{1}})));
  const auto advised = run_limited(enough + 300'000, predict);
  CAPTURE(advised.errors);
  CHECK(advised.code == 0);
}

TEST_CASE("memory limits: Gram matrices and predictions that do not fit are refused before they begin") {
  const TemporaryFolder folder;
  widelimit::data::write_npy(folder / "x.npy", xt::xarray<float>(xt::ones<float>({300'000, 1})));
  const auto refused = run_script("timeout 20 \"$WIDELIMIT\" gram fcn:axes=0 --x " +
                                  (folder / "x.npy").string() + " --out " + (folder / "out").string());
  CHECK(refused.code == 1);
  CHECK(refused.errors.find("widelimit: gram: 300000 inputs do not fit: 67") == 0);
  CHECK(refused.errors.find("; take --store DIR (") != std::string::npos);
}
