#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/options/config_fields.hpp"

namespace widelimit::cli {

/// The commands of `widelimit sde`, in their order.
[[nodiscard]] const std::vector<std::string>& sde_command_names();

/// All fields of a command's configuration. ArgumentError for an unknown one.
[[nodiscard]] const ConfigFields& sde_fields(std::string_view command);

/// Of an entry of `networks` of `sde gradients`.
[[nodiscard]] const ConfigFields& sde_gradient_network_fields();

/// All fields of a command for --help, with an example.
[[nodiscard]] std::string sde_fields_help(std::string_view command);

}  // namespace widelimit::cli
