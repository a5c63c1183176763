// Several equal devices share the tiles of a Gram matrix: two of PoCL's, which executes OpenCL on the CPU.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <utility>
#include <vector>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::testing::shared_devices_test {
namespace {

/// Runs the program with two devices.
ProgramResult run_with_two(const std::string& arguments) {
  return run_script("POCL_DEVICES='pthread pthread' \"$WIDELIMIT\" " + arguments);
}

void write_inputs(const std::filesystem::path& file, const std::vector<std::size_t>& shape) {
  xt::xarray<float> x = xt::xarray<float>::from_shape(shape);
  float phase = 0;
  for (float& value : x) value = std::sin(phase += 1.3F);
  data::write_npy(file, x);
}

TEST_CASE("several devices: results have the bits of one, however many threads deal the tiles") {
  const TemporaryFolder folder;
  write_inputs(folder / "images.npy", {40, 5, 5, 2});
  write_inputs(folder / "vectors.npy", {700, 6});
  const auto result_of = [&](const std::string& network, const std::string& inputs, const std::string& device,
                             const std::string& more) {
    const std::string out = (folder / "out").string();
    const ProgramResult result = run_with_two("gram " + network + " --x " + (folder / inputs).string() +
                                              " --force --out " + out + " --device " + device + more);
    CAPTURE(result.errors);
    REQUIRE(result.code == 0);
    return file_text(folder / "out" / "nngp.npy") + file_text(folder / "out" / "ntk.npy");
  };
  for (const std::string precision : {" --precision float", " --precision double"})
    for (const auto& [network, inputs] :
         {std::pair{"conv-gap:depth=2", "images.npy"}, {"fcn:axes=0", "vectors.npy"}}) {
      CAPTURE(network);
      const std::string one = result_of(network, inputs, "pocl:1", precision);
      CHECK(one.size() > 1000);
      for (const char* shared : {"pocl:0,pocl:1", "pocl:all", "pocl:1,pocl:0"})
        for (const char* threads : {" --threads 1", " --threads 4"})
          CHECK(result_of(network, inputs, shared, precision + threads) == one);
    }
}

TEST_CASE(
    "several devices: stores go on with one or more, and choices of several are refused where one computes") {
  const TemporaryFolder folder;
  write_inputs(folder / "images.npy", {20, 4, 4, 2});
  const std::string store = "gram conv-gap:depth=1 --x " + (folder / "images.npy").string() +
                            " --tile 8 --store " + (folder / "store").string() + " --device ";
  CHECK(run_with_two(store + "pocl:all").output.find("6 computed") != std::string::npos);
  CHECK(run_with_two(store + "pocl:1").output.find("0 computed, 6 found") != std::string::npos);
  CHECK(run_with_two("explain conv-gap:depth=1 --input 4,4,2 --measure 0 --device pocl:all")
            .output.find("each of 2 devices") != std::string::npos);
  const auto fails = [](const ProgramResult& result, const std::string& text) {
    CAPTURE(result.errors);
    CHECK(result.code != 0);
    CHECK(result.errors.find(text) != std::string::npos);
  };
  fails(run_with_two(store + "pocl"), "several devices answer to \"pocl\"; choose one of pocl:0");
  fails(run_with_two(store + "pocl:0,pocl:0"), "twice");
  fails(run_with_two(
            "gp --network fcn --data sample --train 20 --validation 10 --test 5 --size 4 --amplitude 1 "
            "--solver cg --no-report --device pocl:all"),
        "several devices do not share products without the matrix; choose one");
}

}  // namespace
}  // namespace widelimit::testing::shared_devices_test
