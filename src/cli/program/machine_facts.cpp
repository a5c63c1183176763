#include "cli/program/machine_facts.hpp"

#include <cblas.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <tbb/version.h>
#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <boost/version.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <xtensor/xtensor_config.hpp>

#include "cli/program/child_process.hpp"
#include "widelimit/kernel/devices.hpp"
#include "widelimit/numerics/blas_kernels.hpp"
#include "widelimit/numerics/cores.hpp"
#include "widelimit/numerics/memory.hpp"
#include "widelimit/store/arithmetic_facts.hpp"
#include "widelimit/version.hpp"

extern "C" char** environ;

namespace widelimit::cli {
namespace {

/// What stands after `key` and the next of `= :` in the first line of a
/// file that begins with it; "unknown" without one.
std::string value_in(const char* file, std::string_view key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key)) continue;
    const auto begin = line.find_first_not_of("=:\t \"", key.size());
    if (begin == std::string::npos) continue;
    return line.substr(begin, line.find_last_not_of("\t \"") + 1 - begin);
  }
  return "unknown";
}

std::string kind_of_build() {
#ifdef NDEBUG
  std::string kind = "without assertions";
#else
  std::string kind = "with assertions";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  kind += ", with sanitizers";
#endif
#if defined(__AVX512F__)
  kind += ", for processors with AVX-512";
#elif defined(__AVX2__)
  kind += ", for processors with AVX2";
#endif
  return kind;
}

std::string limit_text(std::optional<double> bytes, const char* whose) {
  return bytes ? fmt::format("at most {} ({})", numerics::memory_text(*bytes), whose) : "without limit";
}

std::string kernel_name() {
  utsname name{};
  return uname(&name) == 0 ? fmt::format("{} {} {}", name.sysname, name.release, name.machine) : "unknown";
}

FactGroup build_facts(const std::string& mpi) {
  return {"build",
          {{"widelimit", version},
           {"compiler", __VERSION__},
           {"made", kind_of_build()},
           {"Eigen's alignment", fmt::format("{} bytes", EIGEN_MAX_ALIGN_BYTES)},
           {"MPI", mpi}}};
}

FactGroup machine() {
  const numerics::MemoryLimits memory = numerics::memory_limits();
  return {"machine",
          {{"system", value_in("/etc/os-release", "PRETTY_NAME")},
           {"kernel", kernel_name()},
           {"processor", value_in("/proc/cpuinfo", "model name")},
           {"cores", fmt::format("{}, of which this process has {}", numerics::machine_cores(),
                                 numerics::own_cores())},
           {"memory", numerics::memory_text(memory.physical)},
           {"control group", limit_text(memory.control_group, "memory of this job or container")},
           {"address space", limit_text(memory.address_space, "ulimit -v")},
           {"memory to be had", numerics::memory_text(memory.least())}}};
}

/// "SkylakeX", and where it comes from if not from OpenBLAS itself.
std::string blas_kernels_text() {
  const numerics::BlasKernels& kernels = numerics::blas_kernels();
  if (kernels.used == kernels.by_model) return kernels.used;
  return fmt::format("{}, by the processor's instructions; by its model OpenBLAS took {}", kernels.used,
                     kernels.by_model);
}

FactGroup arithmetic() {
  const nlohmann::json facts = store::arithmetic_facts();
  FactGroup group{"arithmetic",
                  {{"vectors", facts.at("vectors")},
                   {"BLAS", openblas_get_config()},
                   {"BLAS kernels", blas_kernels_text()},
                   {"BLAS threads", fmt::format("{}", openblas_get_num_threads())}}};
  if (const std::string& warning = numerics::blas_kernels().warning; !warning.empty())
    group.facts.push_back({"warning", warning});
  return group;
}

FactGroup libraries() {
  return {"libraries",
          {{"Eigen", fmt::format("{}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION)},
           {"Boost", BOOST_LIB_VERSION},
           {"xtensor",
            fmt::format("{}.{}.{}", XTENSOR_VERSION_MAJOR, XTENSOR_VERSION_MINOR, XTENSOR_VERSION_PATCH)},
           {"oneTBB", TBB_runtime_version()},
           {"fmt", fmt::format("{}", FMT_VERSION)},
           {"nlohmann json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                         NLOHMANN_JSON_VERSION_PATCH)}}};
}

/// The drivers of devices, and what they say where they have none.
FactGroup device_facts() {
  FactGroup group{"devices", {}};
  try {
    for (const PlatformDescription& platform : device_platforms())
      group.facts.push_back({fmt::format("platform {}", group.facts.size() + 1), description_of(platform)});
    if (const std::string missing = missing_for_devices(); !missing.empty())
      group.facts.push_back({"missing", missing});
  } catch (const DeviceError& error) {
    group.facts.push_back({"error", error.what()});
  }
  return group;
}

FactGroup environment() {
  FactGroup group{"environment", {}};
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const auto end = text.find('=');
    for (const char* prefix : {"OPENBLAS_", "GOTO_", "OMP_", "OMPI_", "HWLOC_", "TBB_", "MALLOC_", "LD_",
                               "POCL_", "OCL_ICD_", "NO_COLOR", "TMPDIR"})
      if (text.starts_with(prefix)) group.facts.push_back({text.substr(0, end), text.substr(end + 1)});
  }
  return group;
}

}  // namespace

std::string description_of(const PlatformDescription& platform) {
  const std::string devices = platform.devices == 0   ? "no devices: " + platform.problem
                              : platform.devices == 1 ? "1 device"
                                                      : fmt::format("{} devices", platform.devices);
  return fmt::format("{}, {}, {}", platform.name, platform.version, devices);
}

std::string version_text(const std::string& program, const std::string& mpi) {
  const nlohmann::json facts = store::arithmetic_facts();
  return fmt::format("{} {}\nvectors {}\nBLAS {}, kernels for {}\nMPI {}", program, version,
                     facts.at("vectors").get<std::string>(), openblas_get_config(),
                     facts.at("blas").get<std::string>(), mpi);
}

std::string arithmetic_text() {
  const nlohmann::json facts = store::arithmetic_facts();
  std::string text = fmt::format("computing with vectors {} and BLAS kernels for {}",
                                 facts.at("vectors").get<std::string>(), facts.at("blas").get<std::string>());
  if (const std::string& warning = numerics::blas_kernels().warning; !warning.empty())
    text += "\nwarning: " + warning;
  return text;
}

std::vector<FactGroup> machine_facts(const std::string& mpi) {
  return {build_facts(mpi),
          machine(),
          arithmetic(),
          libraries(),
          device_facts(),
          {"programs",
           {{"gnuplot", first_line_printed_by({"gnuplot", "--version"})},
            {"mpirun", first_line_printed_by({"mpirun", "--version"})}}},
          environment()};
}

}  // namespace widelimit::cli
