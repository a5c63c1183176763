#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/program.hpp"

using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::run_script;

namespace {

/// What bash offers for the last of these words.
std::vector<std::string> offered(const std::string& words, int last) {
  const auto result = run_script(
      "PATH=\"$(dirname \"$WIDELIMIT\"):$PATH\" bash -c 'source <(widelimit completion bash); cd /; "
      "COMP_WORDS=(" +
      words + "); COMP_CWORD=" + std::to_string(last) +
      "; _widelimit; printf \"%s\\n\" \"${COMPREPLY[@]}\"'");
  CHECK(result.errors.empty());
  CHECK(result.code == 0);
  return lines_of(result.output);
}

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("completion: bash is offered commands, options and words where they belong") {
  CHECK(offered("widelimit ne", 1) == Words{"networks"});
  CHECK(offered("widelimit propagation cr", 2) == Words{"critical"});
  CHECK(offered("widelimit propagation critical --fr", 3) == Words{"--free"});
  CHECK(offered("widelimit gp --solver c", 3) == Words{"cholesky", "cg"});
  CHECK(offered("widelimit gp --data m", 3) == Words{"mnist"});
  // Not NAME, which stands for any name.
  CHECK(offered("widelimit gp --device \"\"", 3) == Words{"cpu", "gpu"});
  CHECK(offered("widelimit gp --network struc", 3) == Words{"struct"});
  CHECK(offered("widelimit completion \"\"", 2) == Words{"bash", "zsh", "fish"});
  CHECK(offered("widelimit completion z", 2) == Words{"zsh"});
  // Beside the words, files: of the root folder here.
  CHECK(offered("widelimit gp --network et", 3) == Words{"etc"});
  CHECK(offered("widelimit gp --data et", 3) == Words{""});
}

TEST_CASE("completion: every shell gets every command; others are refused") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const auto result = run_program(std::string("completion ") + shell);
    CHECK(result.code == 0);
    for (const char* word : {"stopping-time", "phase-transition", "zca-regulariser", "conv-gap", "doctor"}) {
      CAPTURE(word);
      CHECK(result.output.find(word) != std::string::npos);
    }
  }
  const std::string fish = run_program("completion fish").output;
  CHECK(fish.find("sample\tgenerated images\n") != std::string::npos);
  CHECK(fish.find("-f -a zsh") != std::string::npos);
  const auto json = nlohmann::json::parse(run_program("completion fish --json").output);
  CHECK(json == nlohmann::json{{"shell", "fish"}, {"script", fish}});
  CHECK(run_program("completion csh").code == 2);
  CHECK(run_program("completion").code == 2);
}
