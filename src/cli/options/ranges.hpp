#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <system_error>

/// Options with values: numbers in ranges, whose messages say what was expected and what came, and choices of words.
namespace widelimit::cli {

template <typename InRange>
CLI::Validator number_in_range(const std::string& expected, InRange in_range) {
  return CLI::Validator(
      [=](const std::string& text) {
        double number = 0;
        const bool is_number = CLI::detail::lexical_cast(text, number);
        return is_number && in_range(number) ? std::string()
                                             : fmt::format("must be {}, got {}", expected, text);
      },
      "");
}

/// Digits that stand for an integer from `smallest` to `largest`: CLI11 itself takes -1 for 2^64 - 1 and cuts
/// what is too large for the type.
template <typename Integer>
CLI::Validator whole_number(Integer smallest, Integer largest = std::numeric_limits<Integer>::max()) {
  return CLI::Validator(
      [=](const std::string& text) {
        Integer number = 0;
        const char* end = text.data() + text.size();
        const auto [stop, error] = std::from_chars(text.data(), end, number);
        if (error == std::errc{} && stop == end && number >= smallest && number <= largest)
          return std::string();
        return fmt::format("must be an integer from {} to {}, got {}", smallest, largest, text);
      },
      "");
}

/// An option with a value; `type` stands for it in the help.
template <typename Value>
CLI::Option* add_value(CLI::App& command, const std::string& name, Value& target, const std::string& about,
                       const std::string& type) {
  return command.add_option(name, target, about)->type_name(type);
}

/// The same of a value in a range.
template <typename Value>
CLI::Option* add_value(CLI::App& command, const std::string& name, Value& target, const std::string& about,
                       const CLI::Validator& range, const std::string& type) {
  return add_value(command, name, target, about, type)->check(range);
}

/// The same of a number; help says its default, which is what the variable holds.
template <typename Number>
CLI::Option* add_number(CLI::App& command, const std::string& name, Number& target, const std::string& about,
                        const CLI::Validator& range, const std::string& type) {
  return add_value(command, name, target, fmt::format("{} [{}]", about, target), range, type);
}

/// An option whose value is one of the words, in any case; the help shows them as `type`, word|word. Target takes a
/// Value.
template <typename Value, typename Target>
void add_choice(CLI::App& command, const std::string& name, Target& target,
                const std::map<std::string, Value>& words, const std::string& type,
                const std::string& description) {
  command
      .add_option_function<std::string>(
          name, [&target, words](const std::string& word) { target = words.at(word); }, description)
      ->transform(CLI::IsMember(words, CLI::ignore_case).description(""))
      ->type_name(type);
}

/// For seeds.
inline CLI::Validator seed_number() { return whole_number<std::uint64_t>(0); }

/// For numbers of threads.
inline CLI::Validator thread_count() { return whole_number(0, 4096); }

/// --threads of a command whose results do not depend on them.
inline void add_threads_option(CLI::App& command, int& threads) {
  add_value(command, "--threads", threads, "Threads, 0 for all [0]; results do not depend on them",
            thread_count(), "N");
}

inline CLI::Validator positive_number() {
  return number_in_range("a finite number above 0",
                         [](double number) { return number > 0 && std::isfinite(number); });
}

inline CLI::Validator number_not_negative() {
  return number_in_range("a number of at least 0", [](double number) { return number >= 0; });
}

/// With both ends.
inline CLI::Validator number_from_to(double from, double to) {
  return number_in_range(fmt::format("a number from {:g} to {:g}", from, to),
                         [from, to](double number) { return number >= from && number <= to; });
}

}  // namespace widelimit::cli
