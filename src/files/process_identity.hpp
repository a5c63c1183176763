#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace widelimit::files {

/// Which process of which machine: file names and claims say whose they are.
struct ProcessIdentity {
  std::string host;  ///< The machine's name, letters, digits and _ only.
  /// 8 hexadecimal digits: of the machine since it was started, and of its numbers of processes.
  std::string space;
  long process = 0;  ///< Its number among those.
  /// 8 hexadecimal digits: numbers of processes come again, and containers may share a host's name.
  std::string random;

  [[nodiscard]] bool operator==(const ProcessIdentity&) const = default;

  /// "node7-1f3a5c7e-4711-9b2d4f60"
  [[nodiscard]] std::string text() const;
  /// What text() made; nothing for other texts.
  [[nodiscard]] static std::optional<ProcessIdentity> parse(const std::string& text);
};

/// 8 hexadecimal digits of a text, the same in every process.
[[nodiscard]] std::string short_sum(std::string_view text);

/// Of this process.
[[nodiscard]] ProcessIdentity this_process();

/// True only where it is known: the process was one of this machine and these numbers, and runs no more.
[[nodiscard]] bool has_ended(const ProcessIdentity& process);

}  // namespace widelimit::files
