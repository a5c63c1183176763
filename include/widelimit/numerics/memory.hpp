#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

/// How much memory this process can have. Containers and batch systems (Slurm's --mem) limit it by control groups,
/// `ulimit -v` by the address space; the machine's memory is the limit of none of them.
namespace widelimit::numerics {

/// Bytes; nothing where there is no such limit.
struct MemoryLimits {
  double physical = 0;  ///< The machine's memory, swap not counted: computing there is no use.
  std::optional<double> control_group;  ///< The least limit of the groups that this process is in.
  std::optional<double> address_space;  ///< RLIMIT_AS.

  [[nodiscard]] double least() const;
};

/// `root`: where /proc and, for paths in it, /sys are looked for; tests have their own.
[[nodiscard]] MemoryLimits memory_limits(const std::filesystem::path& root = "/");

/// Bytes that this process can have at most: the least of the limits.
[[nodiscard]] double available_memory();

/// Bytes of memory that this process uses now.
[[nodiscard]] double resident_memory();

/// Address space, no memory: what BLAS and the C library have yet to reserve before `threads` threads can compute, 0
/// for as many as there are. 256 MiB for each, and a buffer of 128 MiB with a stack for threads that BLAS has yet to
/// start.
[[nodiscard]] double thread_reserve(int threads);

/// Bytes that matrices can take while `threads` threads compute: the least of the limits. Of a limited address space,
/// what is mapped already and thread_reserve() are taken off.
[[nodiscard]] double room_for_matrices(int threads);

/// To be called before anything is computed: BLAS would ask for its buffers for ever where a limit of the address space
/// has no room for them. Throws ArgumentError that says how many threads fit.
void require_room_for_threads(int threads);

/// "3.2 GiB".
[[nodiscard]] std::string memory_text(double bytes);

/// To be called before large memory is taken, which most systems grant and then kill the process for. Throws
/// ArgumentError("WHERE: WHAT takes 298 GiB of memory, 15.6 GiB are available; ADVICE").
void require_memory(std::string_view where, std::string_view what, double bytes, std::string_view advice);

}  // namespace widelimit::numerics
