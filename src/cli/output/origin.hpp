#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace widelimit::cli {

/// What the numbers of a file come from. Every file of `sde`, `heads` and `propagation` says so itself,
/// because files are moved out of their folders.
struct Origin {
  std::string command;                     ///< E.g. "sde simulate".
  nlohmann::ordered_json configuration;    ///< What was asked for.
  std::optional<std::uint64_t> seed = {};  ///< None where nothing is drawn.
};

/// "widelimit" (the version), "command", "configuration" and "seed", the value of "origin" in JSON files.
[[nodiscard]] nlohmann::ordered_json origin_json(const Origin& origin);

/// The same as the first lines of a CSV file, each after "# ".
[[nodiscard]] std::string origin_comment(const Origin& origin);

}  // namespace widelimit::cli
