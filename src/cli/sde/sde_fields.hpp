#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace widelimit::cli {

/// The commands of `widelimit sde`, in their order.
[[nodiscard]] const std::vector<std::string>& sde_command_names();

/// All fields of a command for --help, with an example.
[[nodiscard]] std::string sde_fields_help(std::string_view command);

}  // namespace widelimit::cli
