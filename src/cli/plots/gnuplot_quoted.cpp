#include "cli/plots/gnuplot_quoted.hpp"

#include <fmt/format.h>

#include <iterator>

#include "widelimit/text/visible_text.hpp"

namespace widelimit::cli {

std::string gnuplot_quoted(std::string_view text) {
  constexpr std::string_view plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .,:;()=+-/_",
                             digits = "0123456789";
  std::string result = "\"";
  // Some versions of gnuplot read a fourth digit as part of an escape: none may follow as it is.
  bool after_escape = false;
  for (const char c : visible_text(text)) {
    const bool as_it_is = plain.find(c) != std::string_view::npos ||
                          (digits.find(c) != std::string_view::npos && !after_escape);
    if (as_it_is)
      result += c;
    else
      fmt::format_to(std::back_inserter(result), "\\{:03o}", static_cast<unsigned char>(c));
    after_escape = !as_it_is;
  }
  return result + "\"";
}

std::string gnuplot_quoted_tic(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled += c == '%' ? std::string("%%") : std::string(1, c);
  return gnuplot_quoted(doubled);
}

}  // namespace widelimit::cli
