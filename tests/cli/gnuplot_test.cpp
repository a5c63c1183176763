#include <doctest/doctest.h>

#include <fstream>

#include "cli/program.hpp"

using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

/// Runs the program where `gnuplot` is this shell script, or missing.
ProgramResult run_with_gnuplot(const TemporaryFolder& folder, const std::string& gnuplot,
                               const std::string& arguments) {
  const fs::path programs = folder / "programs";
  fs::create_directory(programs);
  if (!gnuplot.empty()) {
    std::ofstream(programs / "gnuplot") << "#!/bin/sh\n" << gnuplot << '\n';
    fs::permissions(programs / "gnuplot", fs::perms::owner_all);
  }
  return run_script("PATH=" + programs.string() + " \"$WIDELIMIT\" " + arguments);
}

void check_warned_once(const ProgramResult& result, const std::string& part) {
  CAPTURE(result.errors);
  CHECK(result.code == 0);
  const auto lines = lines_of(result.errors);
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].find("widelimit: warning: ") == 0);
  CHECK(lines[0].find(part) != std::string::npos);
}

constexpr const char* missing = "";
constexpr const char* not_installed = "gnuplot is not installed";

}  // namespace

TEST_CASE("gnuplot: where it is missing or dies, all numbers are written, with one warning") {
  struct Case {
    const char* gnuplot;
    const char* warning;
  };
  for (const Case& given : {Case{missing, not_installed}, Case{"exit 3", "gnuplot failed with status 3"},
                            Case{"kill -9 $$", "gnuplot was ended by signal 9"},
                            Case{"echo 'line 0: no terminal' >&2; exit 1", "status 1: line 0: no terminal"},
                            Case{"exit 0", "gnuplot drew nothing"}}) {
    const TemporaryFolder folder;
    CAPTURE(given.gnuplot);
    check_warned_once(
        run_with_gnuplot(
            folder, given.gnuplot,
            "gp --network fcn --network conv-gap:depth=1 --data sample --train 20 --validation 10 "
            "--test 10 --size 4 --out " +
                (folder / "out").string()),
        given.warning);
    for (const char* network : {"fcn", "conv-gap"})
      for (const char* file :
           {"predictions.csv", "results.json", "mean_nngp.npy", "mean_ntk.npy", "run.json"})
        CHECK(fs::exists(folder / "out" / network / file));
    CHECK_FALSE(fs::exists(folder / "out/fcn/confusion_nngp.png"));
  }
}

TEST_CASE("gnuplot: sde, heads and propagation go on without it") {
  const TemporaryFolder folder;
  std::ofstream(folder / "sde.json") << R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 64})";
  std::ofstream(folder / "heads.json") << R"({"activation": "softmax1", "tokens": 4, "heads": 3, "tau": 1,
    "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "samples": 200, "fresh_samples": 200, "records": 5})";
  const std::string name = folder.string() + "/";
  const auto run = [&](const std::string& arguments) {
    const TemporaryFolder empty;
    return run_with_gnuplot(empty, missing, arguments);
  };
  check_warned_once(run("sde simulate " + name + "sde.json --out " + name + "out"), not_installed);
  CHECK(fs::exists(folder / "out/quantiles.csv"));
  check_warned_once(run("heads flow " + name + "heads.json --out " + name + "h.csv --plot " + name + "h.png"),
                    "h.png");
  CHECK(fs::exists(folder / "h.csv"));
  CHECK_FALSE(fs::exists(folder / "h.png"));
  check_warned_once(run("propagation trajectory --depth 3 --out " + name + "p.csv --plot " + name + "p.png"),
                    not_installed);
  CHECK(fs::exists(folder / "p.csv"));
}

TEST_CASE("gnuplot: the ending of a picture's name says what it is a file of") {
  const TemporaryFolder folder;
  const auto draw = [&](const std::string& ending, const std::string& command) {
    return run_script("\"$WIDELIMIT\" " + command + (folder / ("picture" + ending)).string());
  };
  const std::string trajectory =
      "propagation trajectory --depth 3 --out " + (folder / "t.csv").string() + " --plot ";
  struct Case {
    const char* ending;
    const char* begin;
  };
  for (const Case& given : {Case{".png", "\x89PNG"}, Case{".svg", "<?xml"}, Case{".pdf", "%PDF"}}) {
    CAPTURE(given.ending);
    const auto drawn = draw(given.ending, trajectory);
    CHECK(drawn.code == 0);
    CHECK(drawn.errors.empty());
    CHECK(file_text(folder / ("picture" + std::string(given.ending))).starts_with(given.begin));
  }
  for (const char* ending : {".eps", ".jpg", ".PNG", ""}) {
    CAPTURE(ending);
    const auto refused = draw(ending, trajectory);
    CHECK(refused.code == 2);
    CHECK(refused.errors.find("expected a picture's name that ends in .png, .svg or .pdf") !=
          std::string::npos);
    CHECK_FALSE(fs::exists(folder / ("picture" + std::string(ending))));
  }
}

TEST_CASE("gnuplot: a picture is replaced only by a whole one") {
  const TemporaryFolder folder;
  const std::string arguments = "propagation trajectory --depth 3 --out " + (folder / "p.json").string() +
                                " --plot " + (folder / "p.png").string();
  std::ofstream(folder / "p.png") << "old";
  const TemporaryFolder dying, drawing;
  check_warned_once(run_with_gnuplot(dying, "printf half; exit 1", arguments), "status 1");
  CHECK(file_text(folder / "p.png") == "old");
  // A script with more than a pipe holds, which nobody reads.
  CHECK(run_with_gnuplot(drawing, "printf new", arguments).errors.empty());
  CHECK(file_text(folder / "p.png") == "new");
}
