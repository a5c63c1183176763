#include <doctest/doctest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using widelimit::testing::file_text;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

constexpr double seconds_before = 1.2;
/// A second to end, and what starting processes on a busy machine takes.
constexpr double seconds_to_end = 1.8;

void write_inputs(const fs::path& file, const std::vector<std::size_t>& shape) {
  auto x = xt::xarray<double>::from_shape(shape);
  double value = 0;
  for (double& entry : x) entry = std::sin(value += 0.7);
  widelimit::data::write_npy(file, x);
}

/// Sends a signal to the program in the midst of its work, which takes minutes, and checks that it ends with
/// this code, soon and with one message. If that is given, one signal is sent: timeout sends a second one to the group.
void check_interrupted(const std::string& signal, int code, const std::string& arguments,
                       const std::string& environment = "", const std::string& message = "") {
  CAPTURE(arguments);
  const auto begin = std::chrono::steady_clock::now();
  const ProgramResult result =
      run_script(environment + " exec timeout " + (message.empty() ? "" : "--foreground ") +
                 "--preserve-status --signal=" + signal + " " + std::to_string(seconds_before) +
                 " \"$WIDELIMIT\" " + arguments);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CAPTURE(result.errors);
  CHECK(result.code == code);
  CHECK(seconds < seconds_before + seconds_to_end);
  CHECK(result.errors.find("widelimit: " + message) == 0);
  CHECK(std::count(result.errors.begin(), result.errors.end(), '\n') == 1);
}

/// Networks, inputs and configurations of work that takes minutes.
class LongWork : public TemporaryFolder {
 public:
  LongWork() {
    write_inputs(*this / "images.npy", {300, 24, 24, 2});
    write_inputs(*this / "sequences.npy", {4, 256, 8});
    write_inputs(*this / "long.npy", {12, 512, 8});
    write_attention("sampled.json", R"("samples": 100000)");
    write_attention("gelu.json", R"("weights": "gelu")");
    write("sde.json", R"({"model": "transformer", "gamma_squared": 0.125, "horizon": 1, "tokens": 8,
      "paths": 1000000, "max_step": 1e-4})");
    write("network.json", R"({"network": "shaped_transformer", "gamma_squared": 0.125, "width": 200,
      "depth": 150, "samples": 1000000})");
    // Positions make tokens differ, so that the softmax is sampled.
    write("block.json", R"({"widelimit": 1, "layers": [{"layer": "sum", "branches": [{"layers": []},
      {"scale": 0.5, "layers": [{"layer": "rms_norm"}, {"layer": "attention", "samples": 100000,
      "scaling": "inverse_sqrt_width", "positions": {"kind": "identity", "input_weight": 0.5, "position_weight": 0.5}}]}]}]})");
    const std::string prior = R"("prior": {"kind": "flip2", "nu1": 2, "nu2": 2})";
    write("flow.json",
          R"({"activation": "softmax1", "tokens": 8, "heads": 6, "tau": 1e5, "samples": 50000, )" + prior +
              "}");
    write("sgd.json",
          R"({"activation": "softmax1", "tokens": 5, "heads": 4, "tau": 1e4, "dimension": 1000, )" + prior +
              "}");
    write("bayes.json", R"({"tokens": 50, "samples": 1000000000, )" + prior + "}");
  }

  [[nodiscard]] std::string file(const std::string& name) const { return (*this / name).string(); }
  [[nodiscard]] std::string out() const { return " --out " + file("out") + " "; }

 private:
  void write(const std::string& name, const std::string& text) const { std::ofstream(*this / name) << text; }

  void write_attention(const std::string& name, const std::string& fields) const {
    write(name, R"({"widelimit": 1, "name": "attention", "layers": [{"layer": "attention",
      "scaling": "inverse_sqrt_width", )" +
                    fields + R"(}, {"layer": "flatten"}, {"layer": "dense"}]})");
  }
};

}  // namespace

TEST_CASE("interrupt: every signal ends a run, and leaves nothing") {
  const LongWork work;
  struct Signal {
    const char* name;
    int code;
  };
  for (const Signal& signal : {Signal{"INT", 130}, Signal{"TERM", 143}, Signal{"HUP", 129}}) {
    CAPTURE(signal.name);
    check_interrupted(signal.name, signal.code,
                      "gram conv-gap:depth=8 --x " + work.file("images.npy") + work.out());
    CHECK_FALSE(fs::exists(work / "out"));
  }
}

TEST_CASE("interrupt: from within slow stages") {
  const LongWork work;
  check_interrupted("INT", 130,
                    "gram " + work.file("sampled.json") + " --x " + work.file("sequences.npy") + work.out());
  check_interrupted("INT", 130,
                    "gram " + work.file("gelu.json") + " --x " + work.file("long.npy") + work.out());
  CHECK_FALSE(fs::exists(work / "out"));
}

TEST_CASE("interrupt: sde, heads, propagation and explain") {
  const LongWork work;
  check_interrupted("INT", 130, "sde simulate " + work.file("sde.json") + work.out());
  check_interrupted("INT", 130, "sde network " + work.file("network.json") + work.out());
  check_interrupted("INT", 130, "sde compare " + work.file("network.json") + work.out());
  for (const char* name : {"flow", "sgd", "bayes"})
    check_interrupted("INT", 130, "heads " + std::string(name) + " " + work.file(name) + ".json");
  check_interrupted("TERM", 143, "propagation simulate gradient --tokens 200 --width 200 --networks 100000");
  check_interrupted("INT", 130, "propagation phase --x alpha:0.01:0.95:2000 --y sigma_w:0.2:4:2000");
  const std::string vary =
      work.file("block.json") + " --tokens 128 --depth 64 --vary layers[0].branches[1].scale=.1:.9:40";
  check_interrupted("INT", 130, "propagation network " + vary, "", "propagation network: stopped on request");
  check_interrupted("INT", 130, "propagation network " + work.file("block.json") + " --tokens 128", "",
                    "propagation network: stopped on request");
  check_interrupted("INT", 130, "explain conv-gap:depth=8 --input 32,32,3 --measure 1000");
  CHECK_FALSE(fs::exists(work / "out"));
}

TEST_CASE("interrupt: what cannot be asked to stop is ended, and leaves nothing either") {
  // Nearly all of the time goes into one call of LAPACK.
  const TemporaryFolder folder;
  write_inputs(folder / "x_train.npy", {6000, 3});
  write_inputs(folder / "y_train.npy", {6000});
  write_inputs(folder / "x_test.npy", {2, 3});
  check_interrupted("TERM", 143,
                    "gp --network fcn:depth=1 --precision double --data npy --regulariser 0.1 --path " +
                        folder.string() + " --out " + (folder / "out").string());
  CHECK_FALSE(fs::exists(folder / "out"));
}

TEST_CASE("interrupt: a run that is interrupted leaves the results of the one before") {
  const LongWork work;
  REQUIRE(run_program("gram fcn --x " + work.file("sequences.npy") + work.out()).code == 0);
  const std::string before = file_text(work / "out/nngp.npy");
  check_interrupted("INT", 130, "gram conv-gap:depth=8 --x " + work.file("images.npy") + work.out());
  CHECK(file_text(work / "out/nngp.npy") == before);
  CHECK(std::distance(fs::directory_iterator(work / "out"), {}) == 3);
}

TEST_CASE("interrupt: while a picture is drawn, the numbers are there already and no temporary file stays") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "programs");
  std::ofstream(folder / "programs/gnuplot") << "#!/bin/sh\nprintf half; exec sleep 60\n";
  fs::permissions(folder / "programs/gnuplot", fs::perms::owner_all);
  std::ofstream(folder / "sde.json") << R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 64})";
  check_interrupted("TERM", 143,
                    "sde simulate " + (folder / "sde.json").string() + " --out " + (folder / "out").string(),
                    "export PATH=" + (folder / "programs").string() + ":$PATH;");
  REQUIRE(fs::exists(folder / "out/quantiles.csv"));
  // correlations, means, quantiles, samples, summary and run.json, without the pictures.
  CHECK(std::distance(fs::directory_iterator(folder / "out"), {}) == 6);
}

namespace {

/// What the program writes to a terminal of this kind until it is interrupted.
std::string shown_on_terminal(const char* kind, const std::vector<std::string>& words) {
  int terminal = -1;
  const pid_t child = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    setenv("TERM", kind, 1);
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    execv(WIDELIMIT_PROGRAM, pointers.data());
    _exit(127);
  }
  std::jthread stopper([child] {
    std::this_thread::sleep_for(std::chrono::duration<double>(2 * seconds_before));
    kill(child, SIGINT);
  });
  std::string shown;
  std::array<char, 4096> block{};
  for (ssize_t count = 0; (count = read(terminal, block.data(), block.size())) > 0;)
    shown.append(block.data(), static_cast<std::size_t>(count));
  int status = 0;
  waitpid(child, &status, 0);
  close(terminal);
  CHECK(WEXITSTATUS(status) == 130);
  return shown;
}

}  // namespace

TEST_CASE(
    "interrupt: a terminal shows one line of progress without escape codes, a dumb one none that goes back") {
  const LongWork work;
  for (const char* kind : {"xterm-256color", "vt100", "dumb", ""}) {
    CAPTURE(kind);
    const std::string shown = shown_on_terminal(kind, {"widelimit", "gram", "conv-gap:depth=8", "--x",
                                                       work.file("images.npy"), "--out", work.file("out")});
    CAPTURE(shown);
    CHECK(shown.find('\x1b') == std::string::npos);
    CHECK(shown.find("stopped on request") != std::string::npos);
    const bool goes_back = *kind == 'x' || *kind == 'v';
    // The terminal itself ends lines with \r\n.
    bool has_return = false;
    for (std::size_t at = shown.find('\r'); at != std::string::npos; at = shown.find('\r', at + 1))
      has_return = has_return || at + 1 == shown.size() || shown[at + 1] != '\n';
    CHECK(has_return == goes_back);
  }
}

TEST_CASE("interrupt: of a store the tiles that are there are told, those of the last half tile are not") {
  const LongWork work;
  const ProgramResult result = run_script(
      "exec timeout --foreground --preserve-status --signal=INT 3 \"$WIDELIMIT\" gram conv-gap:depth=2 "
      "--tile 1 --x " +
      work.file("images.npy") + " --store " + work.file("store"));
  CHECK(result.code == 130);
  CAPTURE(result.errors);
  CHECK(result.errors.find("pairs") == std::string::npos);
  const std::string info = run_program("store info " + work.file("store") + " --json").output;
  const auto there = nlohmann::json::parse(info).at("tiles_there").get<long>();
  CHECK(there > 0);
  CHECK(result.errors.find("stopped on request after " + std::to_string(there) +
                           " tiles, which are in the store") != std::string::npos);
}
