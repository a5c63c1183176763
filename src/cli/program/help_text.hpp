#pragma once

#include <cstddef>
#include <string>

namespace CLI {
class App;
}

/// What --help prints.
namespace widelimit::cli {

/// The help of the command that was chosen, as wide as COLUMNS says, or the terminal of standard output or errors;
/// without any of them as it is.
void print_help(const CLI::App& program);

/// Has the program, and all commands that are added to it afterwards, list the choices of an option one a line.
void list_choices(CLI::App& program);

/// Lines of at most `width` letters, at least 40, broken between words. The rest of a line is indented as far as its
/// description, or further than the name of a field. Examples of commands continue after a backslash, so that a shell
/// takes them. Below 70 letters descriptions are placed under what they describe. Longer lines are left only where a
/// single word of a command is too long.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t width);

}  // namespace widelimit::cli
