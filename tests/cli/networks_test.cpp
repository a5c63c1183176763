#include <doctest/doctest.h>

#include "cli/program.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/version.hpp"

using namespace widelimit;
using widelimit::testing::run_program;

TEST_CASE("networks: lists every name with its description and options") {
  const auto result = run_program("networks");
  CHECK(result.code == 0);
  CHECK(result.errors.empty());
  for (const auto& network : models::named_networks()) {
    CHECK(result.output.find("\n" + network.name + "\n") + 1 < result.output.size() + 1);
    CHECK(result.output.find(network.description) != std::string::npos);
    for (const auto& option : network.options)
      CHECK(result.output.find(option.description) != std::string::npos);
  }
}

TEST_CASE("networks: prints a network with the shapes after its layers") {
  const auto result = run_program("networks myrtle5 --size 8,12");
  CHECK(result.code == 0);
  CHECK(result.output == models::named_network("myrtle5").describe({8, 12}));
  CHECK(run_program("networks struct").output == models::named_network("struct").describe({32, 32}));
}

TEST_CASE("networks: as many axes as sizes; networks for texts have one") {
  CHECK(run_program("networks imdb-struct --depth 2").output ==
        models::named_network("imdb-struct", {{"depth", 2}}).describe({200}));
  CHECK(run_program("networks conv-gap --size 16").output ==
        models::named_network("conv-gap", {{"axes", 1}}).describe({16}));
}

TEST_CASE("networks: --json writes a file that reads back as the network") {
  const auto result = run_program("networks struct:alpha=0.5,rho=2 --depth 1 --json");
  CHECK(result.code == 0);
  CHECK(parse_network(result.output) ==
        models::named_network("struct", {{"alpha", 0.5}, {"rho", 2}, {"depth", 1}}));
}

TEST_CASE("networks: a first value without a name is that of the first option") {
  const auto printed = run_program("networks matern:2.5,length=3 --size 4 --json");
  CHECK(parse_network(printed.output) ==
        models::named_network("matern", {{"smoothness", 2.5}, {"length", 3}, {"axes", 1}}));
  CHECK(parse_network(run_program("networks fcn:5 --json").output) ==
        models::named_network("fcn", {{"depth", 5}}));
}

TEST_CASE("networks: a file stands for a name") {
  const widelimit::testing::TemporaryFolder folder;
  write_network(folder / "n.json", models::named_network("conv-lap"));
  CHECK(run_program("networks " + (folder / "n.json").string() + " --size 9,9").output ==
        models::named_network("conv-lap").describe({9, 9}));
}

TEST_CASE("networks: errors in one line, exit code 1") {
  const auto check = [](const std::string& arguments, const std::string& message) {
    CAPTURE(arguments);
    const auto result = run_program("networks " + arguments);
    CHECK(result.code == 1);
    CHECK(result.output.empty());
    CHECK(result.errors == "widelimit: " + message + "\n");
  };
  check(
      "alexnet",
      "unknown network 'alexnet'; known are fcn, conv-flatten, conv-gap, conv-lap, myrtle5, resnet, vanilla, "
      "struct, residual-attention, imdb-gap, imdb-gap-fcn, imdb-cnn-gap, imdb-struct, decoder, gntk, matern, "
      "laplace, rbf");
  check("fcn:depth=many", "network 'fcn:depth=many': expected a number after '=', got 'many'");
  check("fcn:depth=", "network 'fcn:depth=': expected a number after '=', got ''");
  check("fcn:depth", "network 'fcn:depth': expected OPTION=VALUE, got 'depth'");
  check("fcn:axes=2,4", "network 'fcn:axes=2,4': expected OPTION=VALUE, got '4'");
  check("matern:2", "matern: smoothness must be 0.5, 1.5 or 2.5, got 2");
  check("fcn --depth 1000", "network 'fcn': depth must be an integer from 0 to 100, got 1000");
  check("no/such.json --depth 2", "--depth is for named networks; 'no/such.json' is a file");
}

TEST_CASE("program: version, help, and wrong usage") {
  const auto shown = run_program("--version");
  CHECK(shown.code == 0);
  CHECK(shown.output.starts_with(std::string("widelimit ") + version + "\nvectors "));
  for (const char* part : {"\nBLAS OpenBLAS ", ", kernels for ", "\nMPI "})
    CHECK(shown.output.find(part) != std::string::npos);
  for (const char* command : {"", "gp ", "gram ", "networks "}) {
    CAPTURE(command);
    const auto help = run_program(std::string(command) + "--help");
    CHECK(help.code == 0);
    CHECK(help.errors.empty());
    CHECK(help.output.find("Usage") != std::string::npos);
  }
  for (const char* wrong : {"", "kernel", "gp", "gp --network fcn", "gram fcn", "networks --depht 3"}) {
    CAPTURE(wrong);
    const auto result = run_program(wrong);
    CHECK(result.code == 2);
    CHECK(result.output.empty());
    CHECK(result.errors.find("widelimit: ") == 0);
    CHECK(result.errors.find('\n') == result.errors.size() - 1);
  }
}
