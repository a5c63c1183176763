#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

/// Ranges of numbers in arguments, with messages that say what was expected and what came.
namespace widelimit::cli {

template <typename InRange>
CLI::Validator number_in_range(const char* expected, InRange in_range) {
  return CLI::Validator(
      [=](const std::string& text) {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(text, number);
        return is_number && in_range(number) ? std::string()
                                             : fmt::format("must be {}, got {}", expected, text);
      },
      "");
}

inline CLI::Validator positive_number() {
  return number_in_range("a number above 0", [](double number) { return number > 0; });
}

inline CLI::Validator number_not_negative() {
  return number_in_range("a number of at least 0", [](double number) { return number >= 0; });
}

}  // namespace widelimit::cli
