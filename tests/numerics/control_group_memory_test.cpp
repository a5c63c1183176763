#include "numerics/control_group_memory.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace widelimit::testing {
namespace {

namespace fs = std::filesystem;

/// A folder that stands for "/", with files as the kernel shows them.
class Root {
 public:
  explicit Root(const std::string& name)
      : path_{fs::temp_directory_path() / (name + std::to_string(getpid()))} {}
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  ~Root() { fs::remove_all(path_); }

  Root& with(const fs::path& file, const std::string& text) {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
    return *this;
  }
  [[nodiscard]] std::optional<double> limit() const { return numerics::control_group_memory(path_); }

 private:
  fs::path path_;
};

const std::string unified = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST_CASE("control group memory: version 2, the least limit of a group and those above it") {
  Root root("cgroup-two");
  root.with("proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/vda rw\n" + unified)
      .with("proc/self/cgroup", "0::/system.slice/job_7/step_0\n")
      .with("sys/fs/cgroup/system.slice/job_7/step_0/memory.max", "max\n")
      .with("sys/fs/cgroup/system.slice/job_7/memory.max", "3221225472\n")
      .with("sys/fs/cgroup/system.slice/memory.max", "max\n");
  CHECK(root.limit() == 3221225472.0);
  root.with("sys/fs/cgroup/system.slice/memory.max", "1073741824\n");
  CHECK(root.limit() == 1073741824.0);
}

TEST_CASE("control group memory: version 2 without a limit, and without groups") {
  Root root("cgroup-free");
  CHECK_FALSE(root.limit().has_value());
  root.with("proc/self/mountinfo", unified).with("proc/self/cgroup", "0::/\n");
  CHECK_FALSE(root.limit().has_value());
  root.with("sys/fs/cgroup/memory.max", "max\n");
  CHECK_FALSE(root.limit().has_value());
}

TEST_CASE("control group memory: version 1, beside other controllers and an empty version 2") {
  Root root("cgroup-one");
  root.with("proc/self/mountinfo",
            "33 31 0:30 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
            "35 31 0:32 / /sys/fs/cgroup/memory rw shared:10 master:2 - cgroup cgroup rw,memory\n"
            "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n")
      .with("proc/self/cgroup", "5:cpu,cpuacct:/other\n4:memory:/slurm/job_7\n0::/init.scope\n")
      .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
      .with("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "8589934592\n")
      .with("sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "2147483648\n")
      .with("sys/fs/cgroup/cpu/other/memory.limit_in_bytes", "1\n");
  CHECK(root.limit() == 2147483648.0);
}

TEST_CASE("control group memory: a container sees its own group as the mount") {
  Root root("cgroup-container");
  root.with("proc/self/mountinfo",
            "35 31 0:32 /docker/ab12 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
      .with("proc/self/cgroup", "4:memory:/docker/ab12\n")
      .with("sys/fs/cgroup/memory/memory.limit_in_bytes", "536870912\n");
  CHECK(root.limit() == 536870912.0);
  root.with("proc/self/cgroup", "4:memory:/docker/ab12/inner\n")
      .with("sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "268435456\n");
  CHECK(root.limit() == 268435456.0);
  root.with("proc/self/cgroup", "4:memory:/elsewhere\n");
  CHECK(root.limit() == 536870912.0);
}

}  // namespace
}  // namespace widelimit::testing
