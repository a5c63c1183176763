// The program for many machines: 1, 2, 3 and 8 ranks give the bits of one process, and a rank that dies ends the run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "cli/smooth_problem.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/numerics/cores.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace {

bool mpi_is_missing() {
  if (!std::string(WIDELIMIT_MPI_PROGRAM).empty() && std::system("mpirun --version >/dev/null 2>&1") == 0)
    return false;
  std::puts(
      "skipped: widelimit-mpi is not built, or there is no mpirun (Debian: libopenmpi-dev, openmpi-bin)");
  return true;
}

/// Runs a script in which "$MPI" is the program and "ranks N" starts N of it, on however few cores and as root too.
/// Open MPI keeps memory to the end, which the address sanitizer would report as leaks.
widelimit::testing::ProgramResult run_ranks(const std::string& script) {
  return run_script(
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
      "OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_btl_vader_single_copy_mechanism=none "
      "OMPI_MCA_plm_rsh_agent=/bin/false ASAN_OPTIONS=detect_leaks=0\n"
      "MPI=" WIDELIMIT_MPI_PROGRAM
      "\nranks() { count=$1; shift; mpirun -n $count --bind-to none \"$MPI\" \"$@\"; }\n" +
      script);
}

void write_images(const TemporaryFolder& folder, Index count, Index size) {
  data::write_npy(folder / "x.npy",
                  xt::xarray<float>(widelimit::testing::random_inputs(1, {count, size, size, 2})));
}

std::string gram_of(const TemporaryFolder& folder) {
  return "gram conv-gap:depth=2 --threads 1 --x " + (folder / "x.npy").string();
}

void check_same_as_plain(const TemporaryFolder& folder, const std::string& store) {
  if (!std::filesystem::exists(folder / "plain"))
    REQUIRE(run_program(gram_of(folder) + " --out " + (folder / "plain").string()).code == 0);
  const auto out = store + "-npy";
  REQUIRE(
      run_program("store export " + (folder / store).string() + " --npy " + (folder / out).string()).code ==
      0);
  for (const char* name : {"nngp.npy", "ntk.npy"})
    CHECK(file_text(folder / out / name) == file_text(folder / "plain" / name));
}

}  // namespace

TEST_CASE("widelimit-mpi gram: 1, 2, 3 and 8 ranks compute every tile once, with the bits of one process") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  write_images(folder, 30, 6);
  for (const char* ranks : {"1", "2", "3", "8"}) {
    const std::string store = std::string("store-") + ranks;
    const auto result = run_ranks(std::string("ranks ") + ranks + " " + gram_of(folder) +
                                  " --tile 4 --store " + (folder / store).string());
    CAPTURE(result.errors);
    CHECK(result.code == 0);
    CHECK(result.output.find((folder / store).string() + ": 36 tiles: 36 computed, 0 found, ") == 0);
    check_same_as_plain(folder, store);
  }
}

TEST_CASE("widelimit-mpi gp: the table and files of widelimit gp") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  const std::string gp =
      "gp --data sample --train 40 --validation 20 --test 20 --network fcn --no-report --no-pictures ";
  REQUIRE(run_program(gp + "--out " + (folder / "plain").string()).code == 0);
  const auto result = run_ranks("ranks 2 " + gp + "--store " + (folder / "stores").string() + " --out " +
                                (folder / "out").string());
  CAPTURE(result.errors);
  CHECK(result.code == 0);
  for (const char* name : {"mean_nngp.npy", "mean_ntk.npy", "variance_ntk.npy"})
    CHECK(file_text(folder / "out" / name) == file_text(folder / "plain" / name));
}

TEST_CASE("widelimit-mpi gp --solver distributed: from stores and from the memory of the ranks") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  const std::string gp =
      "gp --data sample --train 60 --validation 20 --test 20 --size 6 --network fcn --precision double "
      "--candidates 0.01,0.1 --no-report --no-pictures --out " +
      folder.string();
  const auto results_of = [&](const std::string& name, const widelimit::testing::ProgramResult& result) {
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    return nlohmann::json::parse(file_text(folder / name / "results.json")).at("results");
  };
  const nlohmann::json expected = results_of("plain", run_program(gp + "/plain"));
  const std::string together = " --solver distributed";
  for (const char* ranks : {"1", "3"})
    for (const std::string& store : {std::string(), " --store " + (folder / "stores").string()}) {
      CAPTURE(ranks);
      CAPTURE(store);
      const auto result =
          run_ranks(std::string("ranks ") + ranks + " " + gp + "/out --force" + together + store);
      if (result.errors.find("without ScaLAPACK") != std::string::npos) return;
      const nlohmann::json found = results_of("out", result);
      CHECK(result.output.find("solver: distributed, given (") != std::string::npos);
      REQUIRE(found.size() == 2);
      for (std::size_t i = 0; i < 2; ++i)
        for (const char* number : {"regulariser", "amplitude", "accuracy", "mean_squared_error", "log_loss",
                                   "probability_scale"}) {
          CAPTURE(number);
          CHECK(found[i].at(number).get<double>() ==
                doctest::Approx(expected[i].at(number).get<double>()).epsilon(1e-8));
        }
    }
  const std::string smooth = widelimit::testing::write_smooth_problem(folder.string());
  const auto rounded = run_ranks("ranks 2 " + smooth.substr(0, smooth.find("--criterion")) +
                                 "--kernel nngp --solver distributed --regulariser 1e-5");
  CAPTURE(rounded.errors);
  REQUIRE(rounded.code == 0);
  CHECK(rounded.output.find(
            "\nnngp: the regulariser 1e-05 and the kernel's smallest eigenvalue are less than ten "
            "times") != std::string::npos);
  const auto times = run_ranks(
      "ranks 2 gp --data sample --train 20 --validation 10 --test 10 --size 6 "
      "--network fcn --solver distributed --time 2");
  CHECK(times.code == 1);
  CHECK(times.errors.find("it knows networks after training only, no --time") != std::string::npos);
}

TEST_CASE(
    "widelimit-mpi gp --solver distributed: the choice of one process, and what would do where it breaks "
    "down") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  const std::string gp = widelimit::testing::write_smooth_problem(folder.string());
  const std::string out = " --force --out " + (folder / "out").string();
  const auto regularisers = [&](const widelimit::testing::ProgramResult& result) {
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    const auto results = nlohmann::json::parse(file_text(folder / "out/results.json")).at("results");
    return std::vector<double>{results[0]["regulariser"], results[1]["regulariser"]};
  };
  const auto together = run_ranks("ranks 2 " + gp + "--solver distributed" + out);
  if (together.errors.find("without ScaLAPACK") != std::string::npos) return;
  CHECK(regularisers(together) == regularisers(run_program(gp + "--solver cholesky" + out)));
  // Without a word about the criterion too.
  const std::string silent = gp.substr(0, gp.find("--criterion"));
  const auto by_ranks = run_ranks("ranks 2 " + silent + "--solver distributed" + out);
  CHECK(by_ranks.output.find("regularisers chosen by leave-one-out negative log density\n") !=
        std::string::npos);
  CHECK(regularisers(by_ranks) == regularisers(run_program(silent + "--solver cholesky" + out)));

  const std::string one =
      gp.substr(0, gp.find("--criterion")) + "--kernel nngp --solver distributed --regulariser ";
  const auto broken = run_ranks("ranks 2 " + one + "1e-9");
  CAPTURE(broken.errors);
  CHECK(broken.code == 1);
  const std::string remedy = "a relative regulariser of ";
  const auto place = broken.errors.find(remedy);
  REQUIRE(place != std::string::npos);
  const std::string enough = broken.errors.substr(place + remedy.size(), 11);
  CHECK(run_ranks("ranks 2 " + one + std::to_string(std::stod(enough))).code == 0);
}

TEST_CASE("widelimit-mpi gp --solver distributed: too large blocks are refused before anything is computed") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  data::write_npy(folder / "x_train.npy", xt::xarray<float>(xt::ones<float>({47000, 1})));
  data::write_npy(folder / "y_train.npy", xt::xarray<double>(xt::arange<double>(47000).reshape({47000, 1})));
  data::write_npy(folder / "x_test.npy", xt::xarray<float>(xt::ones<float>({2, 1})));
  const auto result = run_ranks(
      "ranks 1 gp --network fcn:axes=0 --data npy --targets numbers --kernel nngp --solver distributed "
      "--regulariser 1 --path " +
      folder.string());
  if (result.errors.find("without ScaLAPACK") != std::string::npos) return;
  CHECK(result.code == 1);
  CAPTURE(result.errors);
  CHECK(result.errors.find(
            "of a 47000 x 47000 matrix on 1 ranks, one would hold more than 46340 squared entries") !=
        std::string::npos);
  CHECK(result.errors.find("2 ranks would do") != std::string::npos);
}

TEST_CASE("a rank that is killed ends the run with an error, and loses the tiles in work only") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  write_images(folder, 200, 10);
  const std::string store = (folder / "store").string();
  const std::string command = gram_of(folder) + " --tile 8 --store " + store;
  // One of the ranks, once some tiles are there.
  const auto result = run_ranks("ranks 3 " + command +
                                " & run=$!\n"
                                "while ! [ -e " +
                                store +
                                "/ntk/c/0/5 ]; do sleep 0.02; done\n"
                                "for process in /proc/[0-9]*; do\n"
                                "  [ \"$(readlink $process/exe)\" = \"$MPI\" ] || continue\n"
                                "  tr '\\0' ' ' < $process/cmdline | grep -q " +
                                store +
                                " || continue\n"
                                "  kill -9 ${process#/proc/}; break\n"
                                "done\n"
                                "wait $run");
  CHECK(result.code != 0);
  CAPTURE(result.errors);
  CHECK(result.errors.find("exited on signal 9") != std::string::npos);
  const auto verified = run_program("store verify " + store);
  CHECK(verified.output.find("damaged:") == std::string::npos);
  CHECK(verified.output.find("missing:") != std::string::npos);
  const auto rest = run_ranks("ranks 3 " + command);
  CAPTURE(rest.errors);
  CHECK(rest.code == 0);
  CHECK(rest.output.find(" found") != std::string::npos);
  CHECK(rest.output.find(" 0 found") == std::string::npos);
  check_same_as_plain(folder, "store");
}

TEST_CASE("widelimit-mpi: errors of a rank end the run and are told; there is no run without a store") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  write_images(folder, 6, 4);
  const auto no_store = run_ranks("ranks 2 " + gram_of(folder) + " --out " + (folder / "out").string());
  CHECK(no_store.code == 1);
  CHECK(no_store.errors.find("gram with several processes needs --store") != std::string::npos);
  const auto part =
      run_ranks("ranks 2 " + gram_of(folder) + " --part 1/2 --store " + (folder / "s").string());
  CHECK(part.errors.find("--part is for processes that know nothing of each other") != std::string::npos);
  for (const char* wrong : {"gram fcn --no-such-option", "gram fcn --x nowhere.npy --store s"}) {
    const auto once = run_ranks(std::string("ranks 4 ") + wrong);
    const auto first = once.errors.find("widelimit-mpi: rank");
    CAPTURE(once.errors);
    REQUIRE(first != std::string::npos);
    CHECK(once.errors.find("widelimit-mpi: rank", first + 1) == std::string::npos);
  }
  const auto no_file = run_ranks("ranks 2 gram fcn --x nowhere.npy --store " + (folder / "s").string());
  CHECK(no_file.code == 1);
  CHECK(no_file.errors.find("widelimit-mpi: rank ") != std::string::npos);
  CHECK(no_file.errors.find("nowhere.npy") != std::string::npos);
}

// Sanitizers do not start with a limit of address space.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("widelimit-mpi: under a limit of the address space a rank counts the threads that it uses") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  write_images(folder, 6, 4);
  const auto result = run_ranks(
      "mpirun -n 2 --bind-to none bash -c \"ulimit -v 550000; exec $MPI gram conv-gap:depth=2 --x " +
      (folder / "x.npy").string() + " --store " + (folder / "s").string() + "\"");
  CAPTURE(result.errors);
  CHECK(result.code != 0);
  const int threads = std::max(1, numerics::own_cores() / 2);
  CHECK(result.errors.find(" for " + std::to_string(threads) + (threads == 1 ? " thread," : " threads,")) !=
        std::string::npos);
}
#endif

// Two of PoCL's devices, which execute OpenCL on the CPU.
TEST_CASE("mpi: of several devices each rank has its own, and the result is that of one") {
  if (mpi_is_missing()) return;
  const TemporaryFolder folder;
  write_images(folder, 14, 5);
  const std::string store = (folder / "store").string(), device = " --device pocl";
  const auto result = run_ranks("export POCL_DEVICES='pthread pthread'\nranks 2 " + gram_of(folder) + device +
                                ":all --tile 4 --store " + store);
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  REQUIRE(run_program("store export " + store + " --npy " + (folder / "out").string()).code == 0);
  REQUIRE(run_program(gram_of(folder) + device + " --out " + (folder / "one").string()).code == 0);
  for (const char* name : {"nngp.npy", "ntk.npy"})
    CHECK(file_text(folder / "out" / name) == file_text(folder / "one" / name));
}
