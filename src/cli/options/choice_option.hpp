#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

namespace widelimit::cli {

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

}  // namespace widelimit::cli
