// --help of every command, in terminals of any width.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "cli/program/help_text.hpp"

using widelimit::cli::wrapped;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::run_program_under;
using widelimit::testing::run_script;

namespace {

/// Every command and its help as it is, "" for the program.
std::vector<std::pair<std::string, std::string>> all_helps() {
  std::vector<std::pair<std::string, std::string>> helps{{"", ""}};
  for (std::size_t i = 0; i < helps.size(); ++i) {
    const std::string command = helps[i].first;
    helps[i].second = run_program(command + "--help").output;
    bool listed = false;
    for (const std::string& line : lines_of(helps[i].second)) {
      if (!line.starts_with("  "))
        listed = line == "Subcommands:";
      else if (listed && line[2] != ' ')
        helps.emplace_back(command + line.substr(2, line.find(' ', 2) - 2) + " ", "");
    }
  }
  return helps;
}

std::string without_spaces(const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != ' ' && text[i] != '\n' && !(text[i] == '\\' && text[i + 1] == '\n')) all += text[i];
  return all;
}

}  // namespace

TEST_CASE("help: lines are broken between words, below what they go on with") {
  CHECK(wrapped("one two three four\n", 9) == "one two\nthree\nfour\n");
  CHECK(wrapped("  tokens: integer from 1 to 10; tokens of a sequence\n", 32) ==
        "  tokens: integer from 1 to 10;\n    tokens of a sequence\n");
  const std::string option =
      "  --threads N                 Threads, 0 for all; results do not depend on them\n";
  CHECK(wrapped(option, 72) ==
        "  --threads N                 Threads, 0 for all; results do not depend\n"
        "                              on them\n");
  CHECK(wrapped(option, 50) ==
        "  --threads N\n"
        "      Threads, 0 for all; results do not depend on\n"
        "      them\n");
  const std::string indent(30, ' ');
  CHECK(wrapped(indent + "csv: a CSV file, which is split, or a folder of train.csv\n", 75) ==
        indent + "csv: a CSV file, which is split, or a folder\n" + indent + "  of train.csv\n");
  CHECK(wrapped("  --data sample|reviews|cifar10|mnist|imdb|npy|csv|graphs REQUIRED\n", 40) ==
        "  --data\n    sample|reviews|cifar10|mnist|imdb|\n    npy|csv|graphs REQUIRED\n");
}

TEST_CASE("help: examples are broken so that a shell takes them") {
  CHECK(wrapped("  widelimit gp --network struct --network conv-gap --data sample\n", 50) ==
        "  widelimit gp --network struct \\\n    --network conv-gap --data sample\n");
  CHECK(wrapped("  widelimit networks resnet:depth=2,groups=3 --json > resnet.json\n", 40) ==
        "  widelimit networks \\\n    resnet:depth=2,groups=3 \\\n    --json > resnet.json\n");
  const std::string json =
      R"(  echo '{"activation": "bayes", "prior": {"kind": "flip2", "nu1": 2}}' > flow.json)";
  CHECK(wrapped(json + "\n", 48) ==
        "  echo '{\"activation\": \"bayes\", \"prior\":\n    {\"kind\": \"flip2\", \"nu1\": 2}}' > "
        "flow.json\n");
}

TEST_CASE("help: of every command fits every terminal, with the same words") {
  const auto helps = all_helps();
  CHECK(helps.size() >= 55);
  for (const auto& [command, plain] : helps)
    for (const std::size_t columns : {40, 60, 80, 120}) {
      CAPTURE(command);
      const std::string text = wrapped(plain, columns);
      CHECK(without_spaces(text) == without_spaces(plain));
      for (const std::string& line : lines_of(text)) {
        // One word of a command, which cannot be broken, needs 57 letters.
        const bool one_word = columns == 40 && line.find(' ', 4) >= line.size() - 2;
        if (line.size() > columns && !one_word) FAIL_CHECK(columns, " columns: ", line);
      }
    }
}

TEST_CASE("help: is as wide as COLUMNS says, and ends without gaps") {
  const std::string plain = run_program("sde law --help").output;
  for (const std::size_t columns : {60, 80, 120})
    CHECK(run_program_under("COLUMNS=" + std::to_string(columns), "sde law --help").output ==
          wrapped(plain, columns));
  for (const auto& [command, text] : all_helps()) {
    CAPTURE(command);
    CHECK(text.find("\n\n\n") == std::string::npos);
    for (const std::string& line : lines_of(text)) CHECK_FALSE(line.ends_with(' '));
  }
}

TEST_CASE("help: only what has commands points to them") {
  for (const auto& [command, text] : all_helps()) {
    CAPTURE(command);
    const bool has_commands = text.find("\nSubcommands:\n") != std::string::npos;
    const std::string pointer = "widelimit " + command + "COMMAND --help tells more about a command.\n";
    CHECK((text.find(pointer) != std::string::npos) == has_commands);
    CHECK((text.find("COMMAND --help") != std::string::npos) == has_commands);
  }
}
