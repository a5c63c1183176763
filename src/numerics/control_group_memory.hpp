#pragma once

#include <filesystem>
#include <optional>

namespace widelimit::numerics {

/// The least limit of memory, in bytes, of the control groups that this process is in and of the groups above them:
/// `memory.max` of version 2, `memory.limit_in_bytes` of version 1. Nothing where none of them has a limit.
/// `root`: what stands for "/", see memory_limits().
///
/// Source: the Linux kernel's documentation, admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst; proc(5) for
/// /proc/self/cgroup and /proc/self/mountinfo.
[[nodiscard]] std::optional<double> control_group_memory(const std::filesystem::path& root);

}  // namespace widelimit::numerics
