#pragma once

#include <string>
#include <string_view>

namespace widelimit::cli {

/// A gnuplot string of a text, as visible_text() shows it. Every text that is not a constant of this program passes
/// through it: what gnuplot could read as anything but a letter of the string, quotes and line breaks above all, stands
/// in it as octal digits.
[[nodiscard]] std::string gnuplot_quoted(std::string_view text);

/// The same for the text of a tic, in which gnuplot would put numbers in the place of "%g".
[[nodiscard]] std::string gnuplot_quoted_tic(std::string_view text);

}  // namespace widelimit::cli
