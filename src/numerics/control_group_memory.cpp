#include "numerics/control_group_memory.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace widelimit::numerics {
namespace {

namespace fs = std::filesystem;

/// A mounted hierarchy of groups that can limit memory.
struct Hierarchy {
  fs::path mount;    ///< Where its groups are seen.
  std::string root;  ///< The group that is seen there: in containers often the container's own.
  bool version_2 = false;

  [[nodiscard]] const char* limit_file() const { return version_2 ? "memory.max" : "memory.limit_in_bytes"; }
};

bool lists(const std::string& names, const std::string& wanted) {
  std::istringstream stream(names);
  for (std::string name; std::getline(stream, name, ',');)
    if (name == wanted) return true;
  return false;
}

/// A line of mountinfo: "36 35 98:0 ROOT MOUNT OPTIONS [optional fields] - TYPE SOURCE SUPER_OPTIONS".
std::optional<Hierarchy> hierarchy_of(const std::string& line) {
  std::istringstream stream(line);
  std::string skipped, type, source, options;
  Hierarchy hierarchy;
  stream >> skipped >> skipped >> skipped >> hierarchy.root >> hierarchy.mount;
  while (stream >> skipped && skipped != "-") continue;
  stream >> type >> source >> options;
  hierarchy.version_2 = type == "cgroup2";
  if (hierarchy.version_2 || (type == "cgroup" && lists(options, "memory"))) return hierarchy;
  return std::nullopt;
}

/// A line of /proc/self/cgroup: "4:memory:/job" of version 1, "0::/job" of version 2.
std::string group_in(const fs::path& root, const Hierarchy& hierarchy) {
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (hierarchy.version_2 ? controllers.empty() : lists(controllers, "memory"))
      return line.substr(second + 1);
  }
  return "/";
}

/// "max" is no number, and so no limit.
std::optional<double> number_in(const fs::path& file) {
  std::ifstream stream(file);
  double number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

/// Limits of a group and of those above it, as far as they are seen.
void add_limits(const fs::path& root, const Hierarchy& hierarchy, std::vector<double>& limits) {
  const fs::path group = group_in(root, hierarchy);
  fs::path below = group.lexically_relative(hierarchy.root);
  // A group outside of what is mounted is seen as what is mounted: that of the container.
  if (below.empty() || *below.begin() == "..") below = ".";
  const fs::path mount = root / hierarchy.mount.relative_path();
  for (fs::path at = (mount / below).lexically_normal();; at = at.parent_path()) {
    if (const auto limit = number_in(at / hierarchy.limit_file())) limits.push_back(*limit);
    // The path of a mount can end with a slash, and the root is its own parent.
    if (at == mount || at == mount / "" || at == at.parent_path()) break;
  }
}

}  // namespace

std::optional<double> control_group_memory(const fs::path& root) {
  // Version 1 writes the largest multiple of a page for "no limit".
  constexpr double without_limit = 0x1p62;
  std::vector<double> limits;
  std::ifstream stream(root / "proc/self/mountinfo");
  for (std::string line; std::getline(stream, line);)
    if (const auto hierarchy = hierarchy_of(line)) add_limits(root, *hierarchy, limits);
  std::erase_if(limits, [](double limit) { return limit >= without_limit; });
  if (limits.empty()) return std::nullopt;
  return *std::min_element(limits.begin(), limits.end());
}

}  // namespace widelimit::numerics
