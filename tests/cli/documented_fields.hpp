#pragma once

#include <doctest/doctest.h>

#include <string>

#include "cli/program.hpp"
#include "widelimit/fields/config_fields.hpp"

namespace widelimit::testing {

/// CHECKs that the fields of a configuration stand in `widelimit COMMAND NAME --help`, and in the section NAME of the
/// page docs/COMMAND.md with the same words.
inline void check_fields_are_documented(const std::string& command, const std::string& name,
                                        const ConfigFields& fields) {
  CAPTURE(name);
  const std::string page = file_text(std::string(WIDELIMIT_SOURCE_DIR "/docs/") + command + ".md");
  const std::string help = run_program(command + " " + name + " --help").output;
  const std::size_t begin = page.find("\n## " + name + "\n");
  REQUIRE(begin != std::string::npos);
  const std::string section = page.substr(begin, page.find("\n## ", begin + 1) - begin);
  for (const ConfigField& field : fields) {
    CAPTURE(field.name);
    CHECK(help.find(std::string("  ") + field.name + ": ") != std::string::npos);
    const std::string row = std::string("| `") + field.name + "` | " + field.values.text() + " | " +
                            field.default_value + " | " + field.meaning + " |";
    CHECK(section.find(row) != std::string::npos);
  }
}

}  // namespace widelimit::testing
