// Arguments and files that are wrong in the same way for every command.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/program.hpp"

namespace widelimit::testing {
namespace {

void check_usage(const std::string& arguments, const std::string& message) {
  CAPTURE(arguments);
  const ProgramResult result = run_program(arguments);
  CHECK(result.code == 2);
  CHECK(result.output.empty());
  CHECK(result.errors == "widelimit: " + message + " (see --help)\n");
}

TEST_CASE("usage: a word that is no command is named") {
  check_usage(
      "foo",
      "foo: no such command; there are gp, fit, predict, gram, store, explain, networks, devices, sde, "
      "heads, propagation, check, doctor, rerun, completion");
  check_usage("sde foo x.json",
              "sde foo: no such command; there are simulate, network, compare, stopping-time, output, "
              "entropy, explosion, law, flow, coefficients, gradients");
  check_usage("heads fly",
              "heads fly: no such command; there are flow, sgd, compare, bayes, hessian, prune, attention, "
              "phase-transition, feature-times, digits, digit-times, resampling");
  check_usage("",
              "a command is required; there are gp, fit, predict, gram, store, explain, networks, devices, "
              "sde, heads, propagation, check, doctor, rerun, completion");
  check_usage("store", "store: a command is required; there are info, verify, export");
  check_usage("propagation simulate",
              "propagation simulate: a command is required; there are trajectory, histograms, angle, "
              "gradient, phase, "
              "groups");
}

TEST_CASE("usage: an empty device is not the CPU") {
  for (const char* command :
       {"gp --network fcn --data sample", "explain fcn --input 8,8,3", "gram fcn --x x.npy --out out"})
    check_usage(std::string(command) + " --device ''",
                "--device: expected cpu, gpu or a name, got an empty text");
}

TEST_CASE("usage: integers are taken as they are written or not at all") {
  const std::string gp = "gp --network fcn --data sample ";
  const std::string seeds = "must be an integer from 0 to 18446744073709551615, got ";
  check_usage(gp + "--seed -1", "--seed: " + seeds + "-1");
  check_usage(gp + "--seed 18446744073709551616", "--seed: " + seeds + "18446744073709551616");
  check_usage(gp + "--seed 1.5", "--seed: " + seeds + "1.5");
  for (const std::string seed : {"-1", "1.5", "9223372036854775808"})
    check_usage("propagation simulate groups --seed " + seed,
                "--seed: must be an integer from 0 to 9223372036854775807, got " + seed);
  const std::string counts = "must be an integer from 1 to 9223372036854775807, got ";
  check_usage("explain fcn --input 5 --inputs 99999999999999999999",
              "--inputs: " + counts + "99999999999999999999");
  check_usage("explain conv-gap --input 99999999999999999999,3",
              "--input: " + counts + "99999999999999999999");
  check_usage("explain conv-gap --input 8,8.5,3", "--input: " + counts + "8.5");
  check_usage("networks conv-gap --size 4,0", "--size: " + counts + "0");
  check_usage("networks conv-gap --depth x",
              "--depth: must be an integer from 0 to 9223372036854775807, got x");
  check_usage("sde simulate x.json --out y --threads 99999999999",
              "--threads: must be an integer from 0 to 4096, got 99999999999");
}

TEST_CASE("usage: explain answers in seconds whatever the size") {
  const ProgramResult images = run_program_under("timeout 10", "explain conv-gap --input 1000000,1000000,3");
  CHECK(images.code == 0);
  CHECK(images.output.find("too large to be computed: layers[") != std::string::npos);
  CHECK(images.output.find("global_average_pool): expected at most 4194304 offsets") != std::string::npos);
  const ProgramResult flat =
      run_program_under("timeout 10", "explain conv-flatten --input 1000000,1000000,3");
  CHECK(flat.code == 0);
  CHECK(flat.output.find("not measured: a pair takes about") != std::string::npos);
}

TEST_CASE("files: every reader of JSON names the file, and refuses the same things") {
  const TemporaryFolder folder;
  const auto file = folder / "f.json";
  const std::string out = " --out " + (folder / "out").string();
  const std::pair<const char*, std::string> commands[] = {
      {"networks ", ""},     {"explain ", " --input 4,4,3"}, {"sde simulate ", out}, {"sde network ", out},
      {"sde compare ", out}, {"sde stopping-time ", out},    {"heads flow ", ""},    {"check ", ""}};
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += R"({"layers": [)";
  const std::pair<std::string, const char*> texts[] = {
      {R"({"a": 1, "b": {"c": 1, "c": 2}})", ": b: expected every key once, found \"c\" again\n"},
      {R"({"a": [0, 1e999]})", ": a[1]: expected a number within the range of double, got 1e999\n"},
      {"{\"a\": 1", ": not JSON at line 1, column "},
      {deep, "expected at most 256 lists and objects within one another, found more\n"},
      {"[1]", ": "},
      {"{}", ": "}};
  for (const auto& [text, message] : texts) {
    std::ofstream(file) << text;
    for (const auto& [command, options] : commands) {
      CAPTURE(command);
      CAPTURE(text.substr(0, 60));
      const ProgramResult result = run_program_under("timeout 10", command + file.string() + options);
      CHECK(result.code == 1);
      CHECK(result.errors.starts_with("widelimit: " + file.string() + ": "));
      CHECK(result.errors.find(message) != std::string::npos);
      CHECK(result.errors.size() < 600);
    }
  }
}

TEST_CASE("files: what does not fit the inputs names the network's file, and the axes") {
  const TemporaryFolder folder;
  const auto file = folder / "net.json";
  std::ofstream(file) << R"({"widelimit": 1, "layers": [{"layer": "conv", "filter": [3, 3]}]})";
  const ProgramResult result = run_program("networks " + file.string() + " --size 5");
  CHECK(result.code == 1);
  CHECK(result.errors == "widelimit: " + file.string() +
                             ": layers[0] (conv): expected inputs with 2 spatial axes (one window size an "
                             "axis), got one axis of size 5\n");
}

TEST_CASE("usage: other spellings and slips name the option that was meant") {
  const auto errors = [](const char* arguments) { return run_program(arguments).errors; };
  CHECK(errors("gp --network fcn --data sample --regularizer 0.1")
            .find("--regularizer is no option of this command, did you mean --regulariser?") !=
        std::string::npos);
  CHECK(errors("gp --netwrok fcn --data sample").find("did you mean --network?") != std::string::npos);
  CHECK(errors("gp --network fcn --data sample --colour=red").find("did you mean") == std::string::npos);
}

TEST_CASE("usage: counts are whole numbers for every command, and what came is said") {
  for (const char* command :
       {"gp --network fcn --data sample", "gram fcn --x x.npy --out o", "fit --network fcn",
        "explain fcn --input 5", "store verify s", "predict --model m --x x.npy", "heads flow x.json",
        "propagation phase", "propagation network x.json", "propagation simulate phase"})
    for (const char* count : {"1.5", "-1", "4097", "x", "1e2", " 3", "0x3"})
      check_usage(fmt::format("{} --threads '{}'", command, count),
                  fmt::format("--threads: must be an integer from 0 to 4096, got {}", count));
  check_usage("gp --network fcn --data sample --train 1.5",
              "--train: must be an integer from 1 to 10000000, got 1.5");
  check_usage("gp --network fcn --data sample --size 1.5",
              "--size: must be an integer from 1 to 4096, got 1.5");
  check_usage("fit --network fcn --trials 1.5", "--trials: must be an integer from 1 to 100000, got 1.5");
}

TEST_CASE("usage: messages stay short, however long what they quote is") {
  const TemporaryFolder folder;
  std::ofstream(folder / "long.json")
      << R"({"widelimit": 1, "layers": [{"layer": ")" << std::string(500'000, 'x') << R"("}]})";
  const std::string shell = "long=$(printf '%0100000d' 0); \"$WIDELIMIT\" ";
  for (const std::string arguments : {"$long",
                                      "gram $long --x x.npy --out o",
                                      "gram fcn:$long=3 --x x.npy --out o",
                                      "gram fcn --x $long --out o",
                                      "gram fcn --x x.npy --out $long",
                                      "gram fcn --x x.npy --out o --$long",
                                      "gp --network fcn --data $long",
                                      "gp --network fcn --data sample --train $long",
                                      "gp --network fcn --data csv --path $long --target y",
                                      "gp --network fcn --data csv --target $long --path x.csv",
                                      "explain fcn --input $long",
                                      "rerun $long",
                                      "gram --config $long",
                                      "sde simulate $long --out o",
                                      "heads flow $long",
                                      "propagation phase --x $long",
                                      "networks fcn --size $long",
                                      "predict --model $long --x $long",
                                      "store info $long",
                                      "check $long"}) {
    CAPTURE(arguments);
    const ProgramResult result = run_script("cd '" + folder.string() + "'; " + shell + arguments);
    CHECK(result.code != 0);
    CHECK(result.errors.size() > 20);
    CHECK(result.errors.size() < 6000);
    CHECK(std::count(result.errors.begin(), result.errors.end(), '\n') == 1);
  }
  CHECK(run_program("networks '" + (folder / "long.json").string() + "'").errors.size() < 6000);
}

TEST_CASE("usage: from a working directory that was removed, commands say so or go on") {
  const TemporaryFolder folder;
  std::ofstream(folder / "sde.json") << R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 8})";
  const std::string config = (folder / "sde.json").string(),
                    x = "'" WIDELIMIT_SOURCE_DIR "/data/images/x.npy'";
  const auto from_nowhere = [&](const std::string& arguments) {
    return run_script("mkdir '" + folder.string() + "/gone' && cd '" + folder.string() +
                      "/gone' && rmdir ../gone && " + "\"$WIDELIMIT\" " + arguments);
  };
  for (const std::string& arguments : std::vector<std::string>{
           "gram fcn --x " + x + " --out o", "gram fcn --x " + x + " --out '" + (folder / "o").string() + "'",
           "gp --network fcn --data sample --train 20 --size 4 --out o",
           "fit --network fcn --data sample --train 20 --size 4 --model m",
           "sde simulate " + config + " --out o", "gram fcn --x " + x + " --store s", "rerun o",
           "gram fcn --x x.npy --out o", "store info s", "heads flow x.json --out o",
           "propagation trajectory --out o.csv"}) {
    CAPTURE(arguments);
    const ProgramResult result = from_nowhere(arguments);
    CAPTURE(result.errors);
    CHECK(result.code != 0);
    CHECK(result.errors.find("widelimit: ") == 0);
    CHECK(result.errors.find("filesystem error") == std::string::npos);
    CHECK(result.errors.find("current path") == std::string::npos);
  }
  CHECK(from_nowhere("gram fcn --x " + x + " --out o")
            .errors.find("the working directory is not there any more") != std::string::npos);
  CHECK(from_nowhere("networks").code == 0);
  CHECK(from_nowhere("--version").code == 0);
}

}  // namespace
}  // namespace widelimit::testing
