// What drivers say reaches people: of a loader that says what it is asked to (fake_opencl.cpp), and of PoCL.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

namespace widelimit::testing::devices_test {
namespace {

/// Runs a command with the drivers that `variables` describe.
ProgramResult run_with(const std::string& variables, const std::string& arguments) {
  return run_script("export LD_LIBRARY_PATH='" WIDELIMIT_FAKE_OPENCL "'\n" + variables + " \"$WIDELIMIT\" " +
                    arguments);
}

nlohmann::json devices_with(const std::string& variables) {
  const ProgramResult result = run_with(variables, "devices --json");
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  return nlohmann::json::parse(result.output);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A folder with the vectors that commands compute kernels of.
class Inputs {
 public:
  Inputs() {
    xt::xarray<float> x = xt::xarray<float>::from_shape({5, 4});
    float phase = 0;
    for (float& value : x) value = std::sin(phase += 1.3F);
    data::write_npy(folder_ / "x.npy", x);
  }
  [[nodiscard]] std::string gram(const std::string& device) const {
    return "gram fcn:axes=0 --quiet --threads 1 --force --x " + (folder_ / "x.npy").string() + " --out " +
           (folder_ / "out").string() + " --device " + device;
  }
  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("devices: platforms without devices are listed with the driver's code by its name") {
  const auto found = devices_with("FAKE_PLATFORMS='A=1,2;B=code -5;C=code -1;D=code -4711;E='");
  CHECK(found.at("devices").size() == 2);
  CHECK(found.at("missing") == "");
  const auto platforms = found.at("platforms");
  REQUIRE(platforms.size() == 5);
  CHECK(platforms[0] ==
        nlohmann::json{{"name", "A"}, {"version", "Fake 1.2"}, {"devices", 2}, {"problem", ""}});
  CHECK(has(platforms[1].at("problem"), "clGetDeviceIDs: out of resources, CL_OUT_OF_RESOURCES (-5)"));
  CHECK(has(platforms[2].at("problem"), "CL_DEVICE_NOT_FOUND (-1)"));
  CHECK(has(platforms[3].at("problem"), "OpenCL error -4711"));
  CHECK(platforms[4].at("problem") == "clGetDeviceIDs found none");
  for (const char* command : {"devices", "doctor"}) {
    CAPTURE(command);
    const auto text = run_with("FAKE_PLATFORMS='A=1;B=code -6'", command).output;
    CHECK(has(text, "A, Fake 1.2, 1 device\n"));
    CHECK(
        has(text, "B, Fake 1.2, no devices: clGetDeviceIDs: out of host memory, CL_OUT_OF_HOST_MEMORY (-6)"));
  }
}

TEST_CASE("devices: what a driver said stands in the error of a choice that finds no device") {
  const Inputs inputs;
  const auto error_of = [&](const std::string& variables) {
    return run_with(variables, inputs.gram("gpu")).errors;
  };
  CHECK(has(error_of("FAKE_PLATFORMS='A=code -33'"),
            "A has no devices: clGetDeviceIDs: CL_INVALID_DEVICE (-33)"));
  CHECK(has(error_of("FAKE_PLATFORMS_CODE=-6"),
            "clGetPlatformIDs: out of host memory, CL_OUT_OF_HOST_MEMORY (-6)"));
  CHECK(has(error_of("FAKE_PLATFORMS_CODE=-1001"), "no driver of OpenCL is registered"));
  CHECK(has(error_of("FAKE_PLATFORMS='A=1' FAKE_INFO_CODE=-30"),
            "card 1 is not available: clGetDeviceInfo, CL_DEVICE_GLOBAL_MEM_SIZE: CL_INVALID_VALUE (-30)"));
}

TEST_CASE("devices: a loader that cannot be opened is told with the system's words") {
  const TemporaryFolder folder;
  std::ofstream(folder / "libOpenCL.so.1") << "no library";
  const auto result = run_script("LD_LIBRARY_PATH='" + folder.string() + "' \"$WIDELIMIT\" devices");
  CHECK(result.code == 0);
  CHECK(has(result.output, "libOpenCL.so.1, the loader of OpenCL, cannot be opened ("));
}

TEST_CASE("devices: equal handles are one device, however often they are registered") {
  const auto within = devices_with("FAKE_PLATFORMS='A=1,1,2'");
  CHECK(within.at("devices").size() == 2);
  const auto across = devices_with("FAKE_PLATFORMS='A=1;B=1;C=1,3'");
  CHECK(across.at("devices").size() == 2);
  CHECK(across.at("platforms")[1].at("problem") == "its devices are those of A");
  CHECK(across.at("platforms")[2].at("problem") == "");
  const auto twice = devices_with("FAKE_PLATFORMS='A=1;same A=2'");
  CHECK(twice.at("devices").size() == 1);
  CHECK(twice.at("platforms").size() == 1);
  // The only device needs no number.
  CHECK_FALSE(
      has(run_with("FAKE_PLATFORMS='A=1;B=1' FAKE_BUILD_CODE=-11", Inputs().gram("gpu")).errors, "several"));
}

TEST_CASE("devices: numbers beyond any device are an error, however long") {
  const Inputs inputs;
  for (const char* number : {"2", "18446744073709551615", "18446744073709551616", "99999999999999999999",
                             "00000000000000000000000000000000000000002", "-1", "1e3", "0x1", "+1", "1 "}) {
    CAPTURE(number);
    const auto result =
        run_with("FAKE_PLATFORMS='A=1,2'", inputs.gram("\"gpu:" + std::string(number) + "\""));
    CHECK(result.code == 1);
    CHECK(has(result.errors, "expected a device that answers to"));
  }
}

TEST_CASE("devices: a program that cannot be built is told with its code, and its log whole or where it is") {
  const Inputs inputs;
  const auto error_of = [&](const std::string& variables) {
    const auto result = run_with("TMPDIR=" + inputs.folder().string() + " FAKE_PLATFORMS='A=1' " + variables,
                                 inputs.gram("gpu"));
    CHECK(result.code == 1);
    return result.errors;
  };
  const auto short_log = error_of("FAKE_BUILD_CODE=-11 FAKE_LOG_LINES=3");
  CHECK(has(short_log,
            "clBuildProgram: the source of a kernel cannot be compiled, CL_BUILD_PROGRAM_FAILURE (-11)"));
  CHECK(has(short_log, "line 1: error: of the fake compiler / line 2"));
  CHECK(has(short_log, "line 3: error"));
  CHECK(has(error_of("FAKE_BUILD_CODE=-43"), "CL_INVALID_BUILD_OPTIONS (-43)"));
  CHECK(has(error_of("FAKE_BUILD_CODE=-43"), "(the driver left no log)"));
  // 400 kB: the first and the last lines, and a file with all of them and with the source.
  const auto long_log = error_of("FAKE_BUILD_CODE=-11 FAKE_LOG_LINES=10000");
  CHECK(long_log.size() < 4000);
  CHECK(has(long_log, "line 1: error"));
  CHECK(has(long_log, "line 10000: error"));
  std::smatch place;
  REQUIRE(std::regex_search(long_log, place, std::regex("are in ([^)]*)\\)")));
  const std::string whole = file_text(place[1].str());
  CHECK(has(whole, "line 5000: error: of the fake compiler\n"));
  CHECK(has(whole, "kernel void "));
  CHECK((std::filesystem::status(place[1].str()).permissions() & std::filesystem::perms::others_read) ==
        std::filesystem::perms::none);
  CHECK(has(error_of("TMPDIR=/nowhere FAKE_BUILD_CODE=-11 FAKE_LOG_LINES=10000"),
            "the whole log cannot be kept"));
}

TEST_CASE(
    "devices --tune: a table of forms, the chosen one of which is remembered; a cache that is no good is "
    "told") {
  const TemporaryFolder folder;
  const auto run = [&](const std::string& variables, const std::string& arguments) {
    return run_script("export " + variables + "\n\"$WIDELIMIT\" " + arguments);
  };
  const std::string cache = "WIDELIMIT_CACHE=" + (folder / "forms").string();
  const std::string network = "conv-gap:depth=1 --input 5,5,2 --device pocl",
                    explain = "explain " + network + " --measure 0";
  const auto tuned = run(cache, "devices --tune " + network);
  CAPTURE(tuned.errors);
  REQUIRE(tuned.code == 0);
  CHECK(tuned.errors.empty());
  CHECK(has(tuned.output, "conv-gap:depth=1, inputs of 5 x 5 x 2, float, on "));
  std::smatch chosen;
  REQUIRE(
      std::regex_search(tuned.output, chosen, std::regex(R"(\n  (items=\S+) +[0-9.]+ ms a pair, chosen\n)")));
  CHECK(has(tuned.output, "  items=64,planes=1,windows=loops "));
  CHECK(has(tuned.output, "kept in " + (folder / "forms").string()));
  CHECK(has(run(cache + " WIDELIMIT_DEVICE_FORM=tuned", explain).output,
            "planes by " + chosen[1].str() + " (remembered)"));
  CHECK(has(run(cache + " WIDELIMIT_DEVICE_FORM=usual", explain).output, "(fixed by WIDELIMIT_DEVICE_FORM)"));
  CHECK(has(run(cache, explain).output, "planes by items=64,planes=1,windows=loops (fixed)"));
  const auto all = nlohmann::json::parse(run(cache, "devices --json --tune " + network).output).at("tuned");
  REQUIRE(all.size() == 1);
  CHECK(all[0].at("network") == "conv-gap:depth=1");
  CHECK(all[0].at("forms").size() >= 6);
  std::ofstream(folder / "file") << "no folder";
  const auto unkept = run("WIDELIMIT_CACHE=" + (folder / "file").string(), "devices --tune " + network);
  CHECK(unkept.code == 0);
  CHECK(has(unkept.output, "  not kept\n"));
  CHECK(has(unkept.errors, "widelimit: warning: device: the fastest form cannot be kept"));
}

TEST_CASE("devices --tune: what belongs to it is refused without it, and so is the CPU") {
  const auto run = [](const std::string& arguments) {
    return run_script("\"$WIDELIMIT\" devices " + arguments);
  };
  CHECK(run("--input 5,5,2").code == 2);
  CHECK(run("conv-gap").code == 2);
  const auto cpu = run("--tune conv-gap --device cpu");
  CHECK(cpu.code == 1);
  CHECK(has(cpu.errors, "expected a device, got the CPU"));
  CHECK(has(run("--tune no-such-network --device pocl").errors, "no-such-network"));
  CHECK(has(run("--tune conv-gap --input 5,2 --device pocl:9").errors, "expected a device that answers to"));
}

TEST_CASE("devices: folders that PoCL cannot write are named, with what to do") {
  const Inputs inputs;
  const TemporaryFolder home;
  std::ofstream(home / "file") << "no folder";
  const auto run = [&](const std::string& variables, const std::string& arguments) {
    const auto result = run_script("env -u POCL_CACHE_DIR -u XDG_CACHE_HOME -u HOME " + variables +
                                   " \"$WIDELIMIT\" " + arguments);
    return result.output + result.errors;
  };
  const std::string file = (home / "file").string(),
                    remedy = "set POCL_CACHE_DIR to a folder that can be written";
  for (const auto& [variable, folder] : {std::pair{"POCL_CACHE_DIR", file},
                                         {"XDG_CACHE_HOME", file + "/pocl/kcache"},
                                         {"HOME", file + "/.cache/pocl/kcache"}})
    for (const std::string& command : {std::string("devices"), inputs.gram("pocl")}) {
      CAPTURE(command);
      CAPTURE(variable);
      const std::string told = run(std::string(variable) + "=" + file, command);
      // PoCL lists its devices with some of these folders, and then builds nothing.
      if (command == "devices" && !has(told, "no devices")) continue;
      CHECK(has(told, "PoCL keeps what it compiles in " + folder + " (by " + variable +
                          "), which cannot be written: "));
      CHECK(has(told, remedy));
      CHECK_FALSE(has(told, "bug"));
    }
  // PoCL ends the process at an empty one.
  CHECK(has(run("POCL_CACHE_DIR=", "devices"), "no devices: POCL_CACHE_DIR is an empty text"));
  CHECK(has(run("POCL_CACHE_DIR=", inputs.gram("pocl")), remedy));
  CHECK_FALSE(has(run("POCL_CACHE_DIR=" + home.string(), inputs.gram("pocl")), "error"));
}

}  // namespace
}  // namespace widelimit::testing::devices_test
