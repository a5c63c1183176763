// What the commands of `widelimit propagation` are given has an effect, or is an error that names it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "cli/options/similar_name.hpp"
#include "cli/options/table_options.hpp"
#include "cli/program.hpp"
#include "widelimit/propagation/fields.hpp"

using nlohmann::json;
using widelimit::ConfigField;
using widelimit::cli::similar_name;
using widelimit::propagation::computation;
using widelimit::testing::comments_of;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::without_comments;

namespace {

json output_of(const std::string& arguments) {
  CAPTURE(arguments);
  const auto result = run_program("propagation " + arguments);
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  return json::parse(result.output);
}

void check_message(const std::string& arguments, const std::string& message) {
  CAPTURE(arguments);
  const auto result = run_program("propagation " + arguments);
  CHECK(result.code != 0);
  CHECK(result.output.empty());
  CHECK(result.errors == "widelimit: " + message + "\n");
}

/// The numbers of an output, without what repeats the arguments.
json numbers_of(const std::string& arguments) {
  json output = output_of(arguments);
  for (const char* name : {"origin", "parameters", "network"}) output.erase(name);
  return output;
}

/// An option and two values; of a flag none.
struct Choice {
  std::string option;
  std::array<std::string, 2> values;
};

const std::vector<Choice>& network_choices() {
  static const std::vector<Choice> choices{
      {"--tokens", {"6", "9"}},          {"--depth", {"3", "5"}},       {"--alpha", {".4", ".6"}},
      {"--alpha-A", {".3", ".7"}},       {"--alpha-M", {".3", ".7"}},   {"--sigma-w", {"1.5", "2.5"}},
      {"--sigma-A", {".7", "1.3"}},      {"--sigma-out", {"1.1", "2"}}, {"--mlp-depth", {"1", "3"}},
      {"--activation", {"erf", "gelu"}}, {"--skip", {".8", "1"}},       {"--skip-A", {".7", ".9"}},
      {"--skip-M", {".7", "1"}}};
  return choices;
}

/// Whether an option changes the numbers of a command, or is refused by its name.
void check_effect(const std::string& command, const Choice& choice) {
  CAPTURE(command);
  CAPTURE(choice.option);
  const std::string first = command + " " + choice.option + " " + choice.values[0],
                    second = command + " " + choice.option + " " + choice.values[1];
  const auto result = run_program("propagation " + first);
  if (result.code != 0) {
    CAPTURE(result.errors);
    CHECK(result.errors.starts_with("widelimit: " + choice.option + ": "));
    CHECK(result.errors.ends_with("leave it out\n"));
    return;
  }
  CHECK(numbers_of(first) != numbers_of(second));
}

/// Of every option of a network.
void check_effects(const std::string& command) {
  for (const Choice& choice : network_choices()) {
    // Strengths of these are critical for some gains only.
    const bool needs_gain = command.starts_with("critical --free alpha");
    const std::string gain = needs_gain && choice.option != "--sigma-w" ? " --sigma-w 2.6" : "";
    const bool steps = choice.option == "--sigma-w" || choice.option == "--activation" ||
                       choice.option == "--sigma-out" || choice.option == "--mlp-depth";
    if (needs_gain && steps) continue;
    check_effect(command + gain, choice);
  }
}

/// The page says in words where the depth is a whole number.
bool is_depth(const ConfigField& row) {
  return std::string(row.name) == "depth" && row.values.text() != "integer from 1 to 65536";
}

}  // namespace

TEST_CASE("propagation: every option of a network has an effect, or is refused by its name") {
  for (const std::string command : {"trajectory", "exponents", "critical --free sigma-w"})
    check_effects(command);
}

TEST_CASE("propagation: every option of a network has an effect in all other commands [slow]") {
  for (const std::string command :
       {"phase --x alpha:.2:.8:2 --y sigma_w:1:3:2", "phase --x alpha_A:.2:.8:2 --y alpha_M:.2:.8:2",
        "phase --x tokens:4:8:2 --y sigma_out:1:3:2", "phase --x depth:2:4:2 --y mlp_depth:1:2:2",
        "critical --free balanced", "critical --free alpha-A", "critical --free alpha-M",
        "simulate phase --x alpha:.2:.8:2 --y sigma_w:1:3:2 --width 8 --networks 3",
        "simulate angle --width 8 --networks 3", "simulate gradient --width 8 --networks 3 --q0 1",
        "simulate gradient --width 8 --networks 3"})
    check_effects(command);
}

TEST_CASE("propagation: what has no effect together with other options") {
  check_message("trajectory --alpha .3 --alpha-A .2 --alpha-M .1",
                "--alpha: has no effect together with --alpha-A and --alpha-M; leave it out");
  check_message("trajectory --skip 1 --skip-A .2 --skip-M .1",
                "--skip: has no effect together with --skip-A and --skip-M; leave it out");
  check_message(
      "exponents --skip 1 --published",
      "--published: the printed formulas are those of a fixed point of the norm, which skip connections "
      "of 1 or more do not have; leave it out");
  for (const std::string command : {"exponents", "phase"})
    check_message(
        command + " --causal --published",
        "--published: the printed formulas are for full attention; leave it or the causal mask out");
  for (const std::string free : {"sigma-w", "alpha-A", "alpha-M", "balanced"})
    check_message("critical --tolerance .2 --free " + free,
                  "--tolerance: has no effect together with --free " + free + "; leave it out");
  for (const std::string free : {"strengths-and-gain", "sigma-w", "balanced"})
    check_message("critical --sigma-w 2 --free " + free,
                  "--sigma-w: has no effect together with --free " + free + "; leave it out");
  check_message(
      "critical --sigma-A 2",
      "--sigma-A: exponents of equal tokens do not depend on the scale of the scores; leave it out");
  check_message("phase --sigma-w 2", "--sigma-w: has no effect together with the axis --y; leave it out");
  check_message("phase --sigma-w 2 --x alpha_M:.1:.9:2 --y alpha_A:.1:.9:2 --alpha .3",
                "--alpha: has no effect together with the axes --x and --y; leave it out");
  check_message("simulate angle --depth 3",
                "--depth: has no effect on the angles of one block without --causal; leave it out");
  check_message("simulate gradient --sigma-A 2",
                "--sigma-A: has no effect on equal tokens, which start without --q0; leave it out");
}

TEST_CASE("propagation: every field of the tables is an option of its command, and stands on the page") {
  const std::string page = file_text(WIDELIMIT_SOURCE_DIR "/docs/propagation.md");
  for (const auto& [command, name] : {std::pair<std::string, std::string>("trajectory", "trajectory"),
                                      {"exponents", "exponents"},
                                      {"phase", "phase_diagram"},
                                      {"critical", "critical"},
                                      {"fit", "fit_losses"},
                                      {"simulate trajectory", "simulate_trajectory"},
                                      {"simulate histograms", "simulate_samples"},
                                      {"simulate angle", "simulate_angle"},
                                      {"simulate gradient", "simulate_gradient"},
                                      {"simulate groups", "simulate_groups"},
                                      {"simulate phase", "simulate_phase"},
                                      {"network", "sample_block"}}) {
    CAPTURE(command);
    const std::string help = run_program("propagation " + command + " --help").output;
    for (const ConfigField& row : computation(name).all()) {
      CAPTURE(row.name);
      const bool is_flag = row.values.text() == "true or false";
      CHECK(help.find("\n  " + widelimit::cli::option_name(row.name) + " ") != std::string::npos);
      if (!is_flag) CHECK(help.find("; " + row.values.text() + " [") != std::string::npos);
      CHECK(page.find(fmt::format("| `{}` | {} | {} | {} |", row.name,
                                  is_depth(row) ? "number in [1, 1e+07]" : row.values.text(),
                                  row.default_value, row.meaning)) != std::string::npos);
    }
  }
}

TEST_CASE("propagation: options are given as numbers and words in any form") {
  const json known = numbers_of("critical --tokens 17 --depth 4 --free sigma-w");
  CHECK(numbers_of("critical --tokens 1.7e1 --depth 4.0 --free sigma_w") == known);
  CHECK(output_of("critical --tokens 17 --free sigma_w").at("origin").at("configuration").at("free") ==
        "sigma-w");
}

TEST_CASE("propagation: counts have no line of zeros under a causal mask") {
  const std::string axes = " --causal --depth 2 --x tokens:4:8:2 --y sigma_w:1:3:2";
  CHECK(output_of("phase" + axes).at("lambda_g_zero").empty());
  CHECK(output_of("simulate phase --width 8 --networks 2" + axes).at("gradient_zero").empty());
}

TEST_CASE("propagation fit: columns and options") {
  const TemporaryFolder folder;
  const std::string file = (folder / "runs.csv").string();
  const auto fit_of = [&](const std::string& header) {
    std::ofstream(file) << header << "\n.5,1,2\n.4,2,1\n.3,1.5,2\n.45,1.7,1.5\n.2,2.2,1.1\n";
    return "fit " + file;
  };
  // What was meant is named; other columns are listed and said.
  for (const auto& [typed, meant] :
       {std::pair("sigmaw", "sigma_w"), std::pair("Sigma_W", "sigma_w"), std::pair("token", "tokens"),
        std::pair("activaton", "activation"), std::pair("los", "loss"), std::pair("lamda_a", "lambda_a")})
    check_message(fit_of(std::string("alpha,") + typed + ",time"),
                  fmt::format("{}: the column '{}' is not known; expected {}, or another name for what the "
                              "fit is not to use",
                              file, typed, meant));
  const std::string runs = fit_of("alpha,run,loss");
  const auto result = run_program("propagation " + runs);
  CHECK(result.code == 0);
  CHECK(result.errors == "widelimit: warning: " + file + ": the fit does not use the columns run\n");
  CHECK(json::parse(result.output).at("columns_not_used") == json{"run"});
  check_message(runs + " --alpha .3",
                "--alpha: has no effect together with the column of the file; leave it out");
  check_message(runs + " --sigma-A 2", "--sigma-A: has no effect on exponents of equal tokens; leave it out");
  // Every field of the network that exponents depend on is a column like its option.
  const auto rows_of = [](const std::string& arguments) {
    const auto fitted = run_program("propagation " + arguments);
    CAPTURE(fitted.errors);
    REQUIRE(fitted.code == 0);
    CHECK(fitted.errors.empty());
    return json::parse(fitted.output).at("rows");
  };
  for (const auto& [column, option, value] :
       {std::tuple("skip", "--skip", "1"), std::tuple("skip_A", "--skip-A", ".5"),
        std::tuple("skip_M", "--skip-M", ".7"), std::tuple("alpha_A", "--alpha-A", ".3"),
        std::tuple("alpha_M", "--alpha-M", ".3"), std::tuple("sigma_w", "--sigma-w", "2"),
        std::tuple("sigma_out", "--sigma-out", "shared"), std::tuple("tokens", "--tokens", "9"),
        std::tuple("depth", "--depth", "7"), std::tuple("mlp_depth", "--mlp-depth", "3"),
        std::tuple("activation", "--activation", "gelu")}) {
    CAPTURE(column);
    std::string with_column = fmt::format("alpha,{},loss\n", column), without = "alpha,loss\n";
    for (const char* row : {".9,{},1\n", ".2,{},2\n", ".3,{},3\n", ".4,{},4\n"}) {
      std::string text = row;
      without += std::string(text).erase(text.find(",{}"), 3);
      with_column += text.replace(text.find("{}"), 2, value);
    }
    std::ofstream(file) << with_column;
    const json of_column = rows_of("fit " + file);
    check_message(
        fmt::format("fit {} {} {}", file, option, value),
        fmt::format("{}: has no effect together with the column of the file; leave it out", option));
    std::ofstream(file) << without;
    CHECK(of_column == rows_of(fmt::format("fit {} {} {}", file, option, value)));
    // An MLP of gain 1 has the unit gain at its end, shared or not.
    if (std::string(column) != "sigma_out") CHECK(of_column != rows_of("fit " + file));
  }
  const std::string exponents = fit_of("lambda_a,lambda_g,loss");
  for (const std::string option :
       {"--alpha .3", "--alpha-A .3", "--alpha-M .3", "--sigma-w 2", "--sigma-out 2", "--sigma-A 2",
        "--tokens 8", "--depth 8", "--mlp-depth 2", "--activation erf", "--causal"})
    check_message(exponents + " " + option,
                  option.substr(0, option.find(' ')) +
                      ": has no effect on the exponents lambda_a and lambda_g of the file; leave it out");
}

TEST_CASE("propagation: files of one command are different files") {
  const TemporaryFolder folder;
  const std::string file = (folder / "runs.csv").string();
  std::ofstream(file) << "alpha,loss\n.5,1\n.4,2\n.3,1.5\n.45,1.7\n.2,2.2\n";
  const std::string before = file_text(file);
  check_message("fit " + file + " --out " + file,
                "the table and --out: expected different files, got " + file + " for both");
  CHECK(file_text(file) == before);
  const std::string both = (folder / "both.json").string();
  check_message("trajectory --out " + both + " --block " + both,
                "--out and --block: expected different files, got " + both + " for both");
  const std::string block = (folder / "block.json").string();
  std::ofstream(block) << R"({"widelimit": 1, "layers": [{"layer": "rms_norm"}]})";
  for (const char* command : {"network ", "measure . --network "})
    CHECK(run_program(fmt::format("propagation {}{} --out {}", command, block, block))
              .errors.find("and --out: expected different files") != std::string::npos);
  const std::string link = (folder / "link.json").string();
  std::filesystem::create_symlink(block, link);
  CHECK(run_program(fmt::format("propagation network {} --out {}", block, link))
            .errors.find("the network and --out: expected different files") != std::string::npos);
  std::ofstream(file) << "alpha,causal,loss\n.5,1,1\n.4,0,2\n.3,1,1.5\n.45,1,1.7\n.2,0,2.2\n";
  check_message("fit " + file, file + ": expected the mask of all runs as --causal, got a column of it");
}

TEST_CASE("similar names: one letter of five, two of more, case and separators aside") {
  const std::vector<std::string> known{"alpha", "sigma_w", "tokens", "loss"};
  CHECK(similar_name("alpha", known) == std::nullopt);
  CHECK(similar_name("Alpha", known) == "alpha");
  CHECK(similar_name("alhpa", known) == std::nullopt);
  CHECK(similar_name("alphas", known) == "alpha");
  CHECK(similar_name("sgma-w", known) == "sigma_w");
  CHECK(similar_name("tockens ", known) == "tokens");
  CHECK(similar_name("epoch", known) == std::nullopt);
  CHECK(similar_name("", known) == std::nullopt);
}

TEST_CASE("propagation: CSV holds all that JSON does") {
  const TemporaryFolder folder;
  const std::string file = (folder / "t.csv").string(), block = (folder / "block.json").string();
  const std::string size = " --tokens 6 --width 16 --networks 4";
  // Numbers alone are a row.
  for (const auto& [command, column] :
       {std::pair<std::string, std::string>("critical --tokens 17", "sigma_w"),
        {"simulate angle" + size, "measured_error"},
        {"simulate gradient --depth 2" + size, "log_of_mean"},
        {"exponents --block " + block, "lambda_g"}}) {
    CAPTURE(command);
    REQUIRE(run_program("propagation " + command + " --out " + file).code == 0);
    const auto lines = lines_of(without_comments(file_text(file)));
    REQUIRE(lines.size() == 2);
    CHECK(("," + lines[0] + ",").find("," + column + ",") != std::string::npos);
    CHECK(std::count(lines[0].begin(), lines[0].end(), ',') ==
          std::count(lines[1].begin(), lines[1].end(), ','));
  }
  // What stands beside a table is in comments.
  const std::string network = "network " + block + " --tokens 4 --depth 2";
  for (const auto& [command, names] :
       {std::pair<std::string, std::vector<std::string>>(network + " --gradients --networks 2 --width 8",
                                                         {"exponents", "layer_gradients", "networks"}),
        {network + " --vary 'layers[0].branches[1].scale=.1:.9:3'", {"lambda_a_zero", "lambda_g_zero"}},
        {"trajectory --tokens 6", {"fixed_points"}},
        {"phase --x alpha:.2:.8:2 --y sigma_w:1:3:2", {"lambda_a_zero", "lambda_g_zero"}}}) {
    CAPTURE(command);
    const json whole = output_of(command);
    REQUIRE(run_program("propagation " + command + " --out " + file).code == 0);
    for (const std::string& name : names)
      CHECK(comments_of(file_text(file)).find("\n# " + name + ": " + whole.at(name).dump() + "\n") !=
            std::string::npos);
  }
}

TEST_CASE("propagation: the block of the closed forms as a network file") {
  const TemporaryFolder folder;
  const std::string file = (folder / "block.json").string();
  for (const std::string options :
       {"--activation erf --alpha-A .6 --sigma-out shared --mlp-depth 3", "--activation gelu --sigma-w 2",
        "--activation linear", "--activation relu --alpha-M 0", "--alpha-A 0 --sigma-w 2", "--causal"}) {
    CAPTURE(options);
    const json closed = output_of("exponents --tokens 8 --depth 5 " + options + " --block " + file);
    const json found = output_of("network " + file + " --tokens 8 --depth 5").at("exponents");
    for (const char* name : {"lambda_a_log", "lambda_g"})
      CHECK(found.at(name).at("value").get<double>() ==
            doctest::Approx(closed.at(name).get<double>()).epsilon(1e-9).scale(1));
  }
  const json critical = output_of("critical --tokens 9 --depth 4 --block " + file).at("critical");
  CHECK(std::abs(output_of("network " + file + " --tokens 9 --depth 4")
                     .at("exponents")
                     .at("lambda_a_log")
                     .at("value")
                     .get<double>()) < 1e-9);
  CHECK(critical.at("sigma_w").get<double>() > 1);
  check_message("exponents --block block.txt", "--block: expected FILE.json, got block.txt");
}

TEST_CASE("propagation: the command of the annealing warning works when typed") {
  const TemporaryFolder folder;
  const std::string file = (folder / "block.json").string();
  const std::string off = " --tokens 16 --sigma-A 4 --depth 2", size = " --width 8 --networks 2";
  for (const std::string& command :
       {"trajectory --q0 1 --c0 .3" + off, "simulate trajectory" + off + size,
        "simulate histograms" + off + size, "simulate gradient --q0 2" + off + size,
        "simulate angle --c0 .2 --tokens 16 --sigma-A 4" + size}) {
    CAPTURE(command);
    const auto result = run_program("propagation " + command + " --block " + file);
    REQUIRE(result.code == 0);
    const std::string errors = result.errors, begin = "without that average: widelimit ";
    const auto place = errors.find(begin);
    REQUIRE(place != std::string::npos);
    const std::string typed =
        errors.substr(place + begin.size(), errors.find('\n', place) - place - begin.size());
    CAPTURE(typed);
    const auto exact = run_program(typed);
    CAPTURE(exact.errors);
    REQUIRE(exact.code == 0);
    const json rows = json::parse(exact.output).at("rows"), theory = json::parse(result.output);
    if (!command.starts_with("trajectory")) continue;
    CHECK(rows[0][3].get<double>() == doctest::Approx(theory.at("rows")[0][2].get<double>()).epsilon(1e-14));
    // The average makes norms too large.
    CHECK(rows[2][1].get<double>() < theory.at("rows")[2][1].get<double>() - 0.02);
  }
  // Too large for the recursion, which the warning says.
  const auto large = run_program("propagation trajectory --tokens 20000 --sigma-A 4 --depth 1");
  CHECK(large.errors.find("up to 16384 tokens and 65536 blocks: widelimit propagation network\n") !=
        std::string::npos);
}
