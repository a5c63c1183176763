#pragma once

#include <filesystem>
#include <string>

#include "cli/output/output_folder.hpp"

namespace CLI {
class App;
}

namespace widelimit::cli {

/// Adds --force, which keeps other files.
void add_force_option(CLI::App& command, OtherFiles& others);

/// Adds --no-report.
void add_no_report_option(CLI::App& command, bool& no_report);

/// Adds an option for a picture, whose ending names its format.
void add_picture_option(CLI::App& command, const std::string& name, std::filesystem::path& picture,
                        const std::string& description);

/// Adds --reliability.
void add_reliability_option(CLI::App& command, std::filesystem::path& picture);

}  // namespace widelimit::cli
