#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernel/backends/device/device_form.hpp"

namespace widelimit {

/// The variable of the environment that names the folder where forms are kept. Without it that is `widelimit` among the
/// user's caches (files::user_cache()).
constexpr const char* cache_variable = "WIDELIMIT_CACHE";

/// What decides which form of a chain is the fastest.
struct FormKey {
  std::string device, platform, driver;
  std::string chain;  ///< chain_digest()
};

/// 32 hexadecimal digits of the sources of a chain, in which constants with a fraction or an exponent do not count:
/// weights and biases differ from network to network, and all take the same time.
[[nodiscard]] std::string chain_digest(std::span<const std::string> sources);

/// The form that is kept for a key, if it is one of `candidates`. A file that cannot be read, or does not hold what
/// keep_form() writes, costs a notice (notice_of_device()) and is none.
[[nodiscard]] std::optional<DeviceForm> kept_form(const FormKey& key, std::span<const DeviceForm> candidates);

/// Keeps a form for this version of the library, in a file of its own that appears as a whole: processes may do so at
/// once. Returns the file. Where it cannot be written this costs a notice and returns nothing.
std::optional<std::filesystem::path> keep_form(const FormKey& key, const DeviceForm& form);

}  // namespace widelimit
