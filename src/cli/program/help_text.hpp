#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

/// What --help prints.
namespace widelimit::cli {

/// The help of the command that was chosen, as wide as the terminal, or as COLUMNS says; without either as it is.
void print_help(const CLI::App& program);

/// Has the program and all commands below it list the choices of an option one a line.
void list_choices(CLI::App& program);

/// Lines of at most `width` letters, broken between words. What goes on stands where it began: in the column of
/// descriptions, or deeper than the name of a field. Examples of commands are left alone, as people copy them.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width);

}  // namespace widelimit::cli
