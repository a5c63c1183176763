#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "widelimit/version.hpp"

using widelimit::testing::comments_of;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;
using widelimit::testing::without_comments;

namespace {

nlohmann::json json_of(const std::string& arguments) {
  const auto result = run_program("propagation " + arguments);
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  return nlohmann::json::parse(result.output);
}

void check_error(const std::string& arguments, const std::string& message) {
  CAPTURE(arguments);
  const auto result = run_program("propagation " + arguments);
  CHECK(result.code != 0);
  CHECK(result.output.empty());
  CHECK(result.errors == "widelimit: " + message + "\n");
}

}  // namespace

TEST_CASE("propagation: the note's numbers from the command line") {
  const auto exponents = json_of("exponents --alpha-A 0.8 --alpha-M 0.4 --sigma-w 3");
  CHECK(exponents.at("lambda_a").get<double>() == doctest::Approx(-0.53046393848).epsilon(1e-9).scale(0));
  CHECK(exponents.at("lambda_g").get<double>() == doctest::Approx(-0.036135583878).epsilon(1e-9).scale(0));
  CHECK(exponents.at("phase") == "ordered angles, vanishing gradients");
  const auto critical = json_of("critical --tokens 65 --depth 16 --sigma-out shared").at("critical");
  CHECK(critical.at("alpha_A").get<double>() == doctest::Approx(0.37365918123537).epsilon(1e-8).scale(0));
  CHECK(critical.at("sigma_w").get<double>() == doctest::Approx(1.66847308864496).epsilon(1e-8).scale(0));
  const auto path = json_of("trajectory --alpha 0.3535533905932738 --sigma-w 5");
  CHECK(path.at("rows").size() == 17);
  CHECK(path.at("rows")[16][2].get<double>() == doctest::Approx(0.0435023972189).epsilon(1e-8).scale(0));
  CHECK(path.at("fixed_points").size() == 2);
}

TEST_CASE("propagation: with --out a line says what was written where, or --json gives the results") {
  const TemporaryFolder folder;
  const std::string table = (folder / "t.csv").string(), numbers = (folder / "e.json").string();
  CHECK(run_program("propagation trajectory --depth 3 --out " + table).output ==
        table + ": 4 rows of block, q, cosine, gap\n");
  CHECK(run_program("propagation exponents --out " + numbers).output ==
        numbers + ": results of propagation exponents\n");
  const auto printed = json_of("exponents --json --out " + numbers);
  const auto written = nlohmann::json::parse(file_text(numbers));
  CHECK(printed.at("out") == numbers);
  CHECK(printed.at("lambda_a") == written.at("lambda_a"));
}

TEST_CASE("propagation: phase diagrams as CSV, JSON and picture") {
  const TemporaryFolder folder;
  const std::string axes = " --x alpha:0.1:0.9:5 --y sigma_w:0.5:4:4 ";
  CHECK(run_program("propagation phase" + axes + "--out " + (folder / "p.csv").string()).code == 0);
  const std::string csv = without_comments(file_text(folder / "p.csv"));
  CHECK(csv.rfind("alpha,sigma_w,lambda_a,lambda_g\n", 0) == 0);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 21);
  const auto result = run_program("propagation phase" + axes + "--out " + (folder / "p.json").string() +
                                  " --plot " + (folder / "p.png").string());
  CHECK(result.code == 0);
  const auto json = nlohmann::json::parse(file_text(folder / "p.json"));
  CHECK(json.at("lambda_a_zero").size() == 1);
  CHECK(json.at("lambda_g_zero")[0].at("points").size() > 20);
  CHECK(std::filesystem::file_size(folder / "p.png") > 5000);
}

TEST_CASE("propagation: a gradient that few networks make is told") {
  // Depth over width of 4: the truth is 1.05, and 32 networks say .64 with an error of .001.
  const auto deep =
      run_program("propagation simulate gradient --tokens 2 --width 16 --networks 32 --depth 64 --sigma-w 5");
  CHECK(deep.code == 0);
  const auto summary = nlohmann::json::parse(deep.output);
  CHECK(summary.at("variance_of_log").get<double>() > 1);
  CHECK(deep.errors.find("widelimit: warning: the logarithm of the squared gradient has the variance") == 0);
  const auto wide =
      run_program("propagation simulate gradient --tokens 2 --width 64 --networks 32 --depth 2");
  CHECK(nlohmann::json::parse(wide.output).at("variance_of_log").get<double>() < 1);
  CHECK(wide.errors.empty());
}

TEST_CASE("propagation: simulations report theory beside networks") {
  const std::string size = " --tokens 6 --width 16 --networks 4 --depth 3";
  const auto gradient = json_of("simulate gradient" + size);
  CHECK(gradient.at("log_of_mean").at("standard_error").get<double>() > 0);
  CHECK(gradient.contains("theory_equal_tokens"));
  CHECK(json_of("simulate gradient --q0 1" + size).contains("theory"));
  CHECK(json_of("simulate angle --tokens 6 --width 16 --networks 4").contains("theory"));
  CHECK(json_of("simulate trajectory" + size).at("rows").size() == 4);
  CHECK(json_of("simulate groups" + size).at("rows")[0][3].get<double>() == doctest::Approx(1.5));
  const TemporaryFolder folder;
  CHECK(run_program("propagation simulate histograms" + size + " --out " + (folder / "h.csv").string() +
                    " --plot " + (folder / "h.png").string())
            .code == 0);
  CHECK(std::filesystem::file_size(folder / "h.png") > 5000);
}

TEST_CASE("propagation: a phase diagram of networks beside the theory") {
  const TemporaryFolder folder;
  const std::string command =
      "simulate phase --tokens 8 --width 32 --networks 6 --depth 4 --x alpha:.3:.7:3 --y sigma_w:1:3:2 ";
  for (const std::string variant : {"", "--one-block", "--causal", "--causal --one-block", "--skip 1"}) {
    CAPTURE(variant);
    const auto found = json_of(command + variant);
    CHECK(found.at("columns") ==
          nlohmann::json({"alpha", "sigma_w", "angle_theory", "angle", "angle_error", "angle_z",
                          "gradient_theory", "gradient", "gradient_error", "gradient_z"}));
    REQUIRE(found.at("rows").size() == 6);
    double squares = 0;
    for (const auto& row : found.at("rows"))
      for (const std::size_t at : {2u, 6u}) {
        const double theory = row[at], networks = row[at + 1], error = row[at + 2], z = row[at + 3];
        CHECK(z == doctest::Approx((networks - theory) / error).epsilon(1e-12).scale(0));
        // Of so small a width, and a few networks whose scatter is not well known.
        CHECK(std::abs(networks - theory) < 6 * error + 0.15);
        if (at == 2) squares += z * z;
      }
    CHECK(found.at("angle").at("root_mean_square_z").get<double>() ==
          doctest::Approx(std::sqrt(squares / 6)).epsilon(1e-12).scale(0));
    // Every point has networks of its own.
    CHECK(found.at("rows")[0][3] != found.at("rows")[3][3]);
  }
  CHECK(json_of(command + "--seed 3") == json_of(command + "--seed 3 --threads 1"));
  const auto point = json_of("exponents --tokens 8 --depth 4 --alpha .3 --sigma-w 1");
  CHECK(json_of(command).at("rows")[0][6].get<double>() ==
        doctest::Approx(point.at("lambda_g").get<double>()).epsilon(1e-12).scale(0));
  CHECK(run_program("propagation " + command + "--out " + (folder / "p.csv").string() + " --plot " +
                    (folder / "p.png").string())
            .code == 0);
  CHECK(std::filesystem::file_size(folder / "p.png") > 5000);
}

TEST_CASE(
    "propagation: skip connections of 1 have exponents over depth, the printed formulas a kink of their "
    "own") {
  const auto found = json_of("exponents --skip 1 --alpha 1 --sigma-w 2 --tokens 16 --depth 8");
  CHECK(found.at("norm_growth").get<double>() > 0.1);
  CHECK_FALSE(found.contains("q_star"));
  const TemporaryFolder folder;
  const std::string block = (folder / "block.json").string();
  CHECK(
      run_program("propagation exponents --skip 1 --alpha 1 --sigma-w 2 --tokens 16 --block " + block).code ==
      0);
  const auto network = json_of("network " + block + " --tokens 16 --depth 8").at("exponents");
  CHECK(network.at("at_fixed_point") == false);
  for (const char* name : {"norm_growth", "lambda_a_log", "lambda_g"})
    CHECK(network.at(name).at("value").get<double>() ==
          doctest::Approx(found.at(name).get<double>()).epsilon(1e-10).scale(0));
  const auto critical =
      json_of("critical --skip 1 --alpha 1 --free sigma-w --tokens 16 --depth 8").at("critical");
  CHECK(std::abs(critical.at("lambda_a").get<double>()) < 1e-10);
  CHECK(critical.at("skip_A") == 1);
  // As printed the kink of lambda_g = 0 lies where the paper has it, near (0.5, 2.25).
  const std::string there = "exponents --alpha 0.4935 --sigma-w 2.2544 ";
  CHECK(std::abs(json_of(there + "--published").at("lambda_g").get<double>()) < 1e-4);
  CHECK(std::abs(json_of(there).at("lambda_g").get<double>()) > 1e-2);
  const std::string axes = "phase --x alpha:.4:.6:3 --y sigma_w:2:2.5:3 ";
  CHECK(json_of(axes + "--published").at("rows") != json_of(axes).at("rows"));
}

TEST_CASE("propagation: histograms write the values that they count") {
  const TemporaryFolder folder;
  const auto file = folder / "samples.csv";
  const auto table =
      json_of("simulate histograms --tokens 6 --width 16 --networks 4 --depth 3 --samples " + file.string());
  const std::string text = widelimit::testing::file_text(file);
  CHECK(widelimit::testing::comments_of(text).starts_with("# widelimit "));
  const auto lines = widelimit::testing::lines_of(widelimit::testing::without_comments(text));
  CHECK(lines.front() == "block,observable,value");
  double sum = 0;
  int count = 0;
  for (const std::string& line : lines)
    if (line.starts_with("3,q,")) {
      sum += std::stod(line.substr(4));
      ++count;
    }
  CHECK(count == 4 * 6);
  CHECK(sum / count == doctest::Approx(table.at("rows").back()[1].get<double>()).scale(0).epsilon(1e-12));
  CHECK(run_program("propagation simulate trajectory --samples " + file.string()).code == 2);
}

TEST_CASE("propagation: a causal mask has values of its own, or none") {
  const std::string network = " --tokens 24 --alpha 0.7 --sigma-w 2.1";
  const auto causal = json_of("exponents --causal" + network), full = json_of("exponents" + network);
  CHECK(causal.at("mu_delta").is_null());
  CHECK(causal.at("jacobian_q_p").is_null());
  CHECK(full.at("mu_delta").is_number());
  CHECK(causal.at("lambda_a").get<double>() > causal.at("lambda_a_infinite_depth").get<double>() + 0.05);
  CHECK(full.at("lambda_a") == full.at("lambda_a_infinite_depth"));
  CHECK(json_of("exponents --causal" + network + " --depth 64").at("lambda_a") != causal.at("lambda_a"));
  // Norms and angles of networks lie on the causal theory, off that of full attention.
  const std::string run =
      "simulate histograms --tokens 24 --alpha 0.7 --sigma-w 3 --depth 4 --width 128 --networks 24";
  const auto masked = json_of(run + " --causal").at("rows"), open = json_of(run).at("rows");
  for (const auto& rows : {masked, open})
    for (const auto& row : rows) CHECK(std::abs(row[4].get<double>() - row[6].get<double>()) < 0.03);
  CHECK(std::abs(masked.back()[6].get<double>() - open.back()[6].get<double>()) > 0.08);
  const auto path = json_of("trajectory --causal --tokens 24 --alpha 0.7 --sigma-w 3 --depth 4").at("rows");
  CHECK(path.back()[2].get<double>() ==
        doctest::Approx(masked.back()[6].get<double>()).epsilon(1e-12).scale(0));
}

TEST_CASE("propagation: phases are named after both signs") {
  const auto phase_of = [](const std::string& network) {
    const auto summary = json_of("exponents " + network);
    const std::string angles = summary.at("lambda_a").get<double>() > 0 ? "chaotic" : "ordered",
                      gradients = summary.at("lambda_g").get<double>() > 0 ? "exploding" : "vanishing";
    CHECK(summary.at("phase") == angles + " angles, " + gradients + " gradients");
    return summary.at("phase").get<std::string>();
  };
  CHECK(phase_of("--sigma-w 1") == "ordered angles, vanishing gradients");
  CHECK(phase_of("--sigma-w 4") == "chaotic angles, exploding gradients");
  // Under a causal mask, one block of pairs may part while the gradient still shrinks.
  phase_of("--causal --tokens 64 --alpha 0.1 --sigma-w 2.19");
}

TEST_CASE("propagation: the predictor is fitted to a CSV file") {
  const TemporaryFolder folder;
  {
    std::ofstream file(folder / "runs.csv");
    file << "lambda_a,lambda_g,loss\n";
    for (int i = 0; i < 12; ++i) {
      const double a = -0.5 + 0.09 * i, g = 0.4 - 0.05 * i;
      file << a << ',' << g << ',' << 0.5 + std::max(2 * std::abs(a), 3 * std::abs(g)) << '\n';
    }
  }
  const auto fit = json_of("fit " + (folder / "runs.csv").string());
  CHECK(fit.at("weight_a").get<double>() == doctest::Approx(2).epsilon(1e-3).scale(0));
  CHECK(fit.at("weight_g").get<double>() == doctest::Approx(3).epsilon(1e-3).scale(0));
  CHECK(fit.at("rows").size() == 12);
}

TEST_CASE("propagation: the predictor is fitted to hyperparameters, too") {
  const TemporaryFolder folder;
  const std::string file = (folder / "runs.csv").string(), exponents = (folder / "exponents.csv").string();
  std::ofstream runs(file), measured(exponents);
  runs << "run,alpha,sigma_w,tokens,activation,loss\n";
  measured << "lambda_a,lambda_g,loss\n";
  int run = 0;
  for (const double alpha : {0.2, 0.5, 0.8})
    for (const double sigma_w : {1.0, 2.5, 4.0}) {
      const auto point = json_of(fmt::format(
          "exponents --depth 8 --tokens 32 --activation erf --alpha {} --sigma-w {}", alpha, sigma_w));
      const double lambda_a = point.at("lambda_a_log"), lambda_g = point.at("lambda_g"),
                   loss = 0.3 + std::max(0.5 * std::abs(lambda_a), 2 * std::abs(lambda_g)) + 0.01 * (run % 3);
      runs << fmt::format("{},{},{},32,erf,{}\n", run++, alpha, sigma_w, loss);
      measured << fmt::format("{:.17g},{:.17g},{}\n", lambda_a, lambda_g, loss);
    }
  runs.close();
  measured.close();
  const auto fit = json_of("fit " + file + " --depth 8"), same = json_of("fit " + exponents);
  CHECK(fit.at("origin").at("configuration").at("depth") == 8);
  for (const char* number : {"weight_a", "weight_g", "bias", "weight_a_error", "rank_correlation"})
    CHECK(fit.at(number).get<double>() == doctest::Approx(same.at(number).get<double>()).epsilon(1e-6));
  CHECK(fit.at("weight_g").get<double>() == doctest::Approx(2).epsilon(0.05));
  std::ofstream(folder / "bad.csv") << "alpha,loss\n0.5,1\n1.5,2\n";
  check_error("fit " + (folder / "bad.csv").string(),
              (folder / "bad.csv").string() + ":3: alpha: expected a number in [0, 1], got 1.5");
  std::ofstream(folder / "bad.csv") << "tokens,loss\n2.5,1\n";
  check_error(
      "fit " + (folder / "bad.csv").string(),
      (folder / "bad.csv").string() + ":2: tokens: expected an integer from 2 to 1000000000, got 2.5");
}

TEST_CASE("propagation: tables say what they come from, and are read again") {
  const TemporaryFolder folder;
  const std::string version = widelimit::version, file = (folder / "t.csv").string();
  const auto origin_of = [](const std::string& arguments) { return json_of(arguments).at("origin"); };
  const auto trajectory = origin_of("trajectory --tokens 9 --activation erf --q0 1 --c0 0.5 --depth 3");
  CHECK(trajectory.at("widelimit") == version);
  CHECK(trajectory.at("command") == "propagation trajectory");
  CHECK_FALSE(trajectory.contains("seed"));
  CHECK(trajectory.at("configuration") == nlohmann::json{{"tokens", 9},
                                                         {"activation", "erf"},
                                                         {"c0", 0.5},
                                                         {"q0", 1.0},
                                                         {"depth", 3.0},
                                                         {"causal", false},
                                                         {"alpha_A", 0.5},
                                                         {"alpha_M", 0.5},
                                                         {"sigma_A", 1.0},
                                                         {"sigma_w", 1.0},
                                                         {"sigma_out", "unit"},
                                                         {"mlp_depth", 2}});
  for (const char* command :
       {"exponents", "critical --tokens 65 --free sigma-w", "phase --x alpha:0.1:0.9:3 --y sigma_w:0.5:4:3"})
    CHECK(origin_of(command).at("configuration").at("activation") == "tanh");
  const std::string size = " --tokens 6 --width 16 --networks 4 --depth 2 --seed 3";
  for (const std::string kind : {"trajectory", "histograms", "angle", "gradient", "groups"}) {
    // One block has no depth.
    const auto origin = origin_of("simulate " + kind + size + (kind == "angle" ? " --causal" : ""));
    CHECK(origin.at("command") == "propagation simulate " + kind);
    CHECK(origin.at("configuration").at("width") == 16);
    CHECK(origin.at("seed") == 3);
  }
  CHECK(run_program("propagation simulate groups" + size + " --out " + file).code == 0);
  CHECK(
      comments_of(file_text(file)).starts_with("# widelimit " + version + ", propagation simulate groups\n"));
  CHECK(comments_of(file_text(file)).find("\n# seed: 3\n") != std::string::npos);
  {
    std::ofstream runs(folder / "runs.csv");
    runs << "# of 12 networks\nlambda_a,lambda_g,loss\n";
    for (int i = 0; i < 12; ++i)
      runs << 0.1 * i - 0.4 << ',' << 0.03 * i * i - 1 << ',' << 1 + 0.2 * i << '\n';
  }
  const std::string again = (folder / "again.csv").string();
  CHECK(run_program("propagation fit " + (folder / "runs.csv").string() + " --out " + again).code == 0);
  CHECK(json_of("fit " + again).at("rows").size() == 12);
  std::ofstream(folder / "bad.csv") << "# one\n# two\nlambda_a,loss\n";
  check_error("fit " + (folder / "bad.csv").string(),
              (folder / "bad.csv").string() + ": expected a column 'lambda_g', found lambda_a, loss");
}

TEST_CASE("propagation: a warning where annealed attention is not what networks do") {
  // sigma_A^2 (1 - cosine) <= ln(16) / 2: q = .809, .702 after two blocks, where wide networks have .731,
  // .581.
  const std::string off = " --tokens 16 --sigma-A 4 --depth 2", size = " --width 16 --networks 4";
  const std::string warning =
      "widelimit: warning: the theory averages attention's numerator and denominator apart (annealed), which "
      "is good up to 1 - cosine = ln(tokens) / (2 sigma_A^2) = 0.0866, but tokens come to ";
  const auto errors_of = [](const std::string& arguments) {
    const auto result = run_program("propagation " + arguments);
    CHECK(result.code == 0);
    return result.errors;
  };
  for (const std::string command : {"trajectory", "simulate trajectory", "simulate histograms",
                                    "simulate gradient --q0 1", "trajectory --causal"}) {
    CAPTURE(command);
    const std::string own = command.starts_with("simulate") ? size : "";
    const std::string errors = errors_of(command + off + own);
    CHECK(errors.find(warning +
                      "1; without that average: the same command with --block block.json, then "
                      "widelimit propagation network block.json --depth 2 --tokens 16 --q0 1 --c0 0\n") !=
          std::string::npos);
    CHECK(errors_of(command + " --tokens 16 --depth 2" + own).find("annealed") == std::string::npos);
  }
  CHECK(errors_of("simulate groups" + off + size).find(warning + "0.5; ") != std::string::npos);
  const std::string angle = "simulate angle --tokens 16 --sigma-A 4" + size;
  CHECK(errors_of(angle + " --c0 0.8").find(warning + "0.2; ") != std::string::npos);
  CHECK(errors_of(angle + " --c0 0.99").find("annealed") == std::string::npos);
}

TEST_CASE("propagation: errors name the option") {
  const std::string help = " (see --help)", small = " --tokens 6 --width 16 --networks 4 --depth 2";
  check_error("exponents --alpha-A 1.2", "--alpha-A: must be a number in [0, 1], got 1.2" + help);
  check_error("exponents --alpha-A -0.3", "--alpha-A: must be a number in [0, 1], got -0.3" + help);
  for (const char* command : {"trajectory", "simulate trajectory", "simulate histograms"})
    check_error(command + std::string(" --depth 2 --tokens 4 --c0 0.5"),
                "--c0: needs --q0 as well, the squared norm / width of the tokens: give --q0 1");
  check_error("phase --block b.json",
              "--block: the blocks of a phase diagram differ from point to point; exponents --block writes "
              "that of one "
              "point, and propagation network --vary goes over the numbers of such a file");
  check_error("simulate gradient --c0 0.5" + small,
              "--c0: needs --q0 as well; tokens start equal, at the fixed point, without them");
  check_error("simulate angle --c0 -0.5" + small, "--c0: must be a number in [0, 1], got -0.5" + help);
  check_error("trajectory --tokens 5 --q0 1 --c0 -0.5",
              "--c0: BlockMap::trajectory: the cosine must lie in [-1 / (n - 1), 1] = [-0.25, 1], got -0.5");
  check_error("trajectory --causal --plot p.png",
              "--plot: the field of displacements is that of tokens that are alike; leave it out with "
              "--causal");
  check_error(
      "exponents --alpha 0",
      "--alpha: expected a strength above 0 of one branch at least, got 0 for both: then no block changes "
      "anything");
  const std::string gains = "--sigma-out: must be unit, shared or a number in [0, 1e+06], got ",
                    depths = "--depth: must be an integer from 1 to 10000000, got ";
  check_error("exponents --sigma-out big", gains + "big" + help);
  check_error("exponents --sigma-out -1", gains + "-1" + help);
  check_error("trajectory --depth 2.5", depths + "2.5" + help);
  check_error("trajectory --depth 1e30", depths + "1e30" + help);
  check_error("exponents --depth 2.5 --width 64",
              "--depth: expected a whole number of blocks from 1 to 1e+07, got 2.5");
  check_error("simulate trajectory --networks 1",
              "--networks: must be an integer from 2 to 1048576, got 1" + help);
  check_error("phase --x sigma_w:1:2:1e30", "--x: COUNT: expected a whole number from 2 to 2000, got 1e+30");
  check_error("phase --x sigma_w:1:2:2.5", "--x: COUNT: expected a whole number from 2 to 2000, got 2.5");
  check_error("phase --x sigma_w:1:2:1", "--x: COUNT: expected a whole number from 2 to 2000, got 1");
  check_error("phase --x alpha:0.1", "--x: expected NAME:FROM:TO[:COUNT], got 'alpha:0.1'");
  check_error("phase --x alpha:1:0", "--x: evenly_spaced: alpha must rise between finite ends, got 1 to 0");
  check_error(
      "critical --free luck",
      "--free: must be one of strengths_and_gain, sigma_w, alpha_M, alpha_A, balanced, got luck" + help);
  check_error("exponents --out result.txt", "--out: expected FILE.json or FILE.csv, got result.txt");
  check_error("simulate groups --p-inside 0.1" + small,
              "--p-inside: expected p_across <= p_inside <= q0, got 0.5, 0.1 and 1");
}

namespace {

/// Runs a command with a value that its option cannot have.
void check_option_refused(const std::string& command, const std::string& option, const std::string& value) {
  const std::string arguments = command + " " + option + "=" + value;
  CAPTURE(arguments);
  const auto result = run_program("propagation " + arguments);
  CHECK(result.code != 0);
  CHECK(result.output.empty());
  CAPTURE(result.errors);
  CHECK(result.errors.find(option + ": ") != std::string::npos);
  CHECK(result.errors.find('\n') + 1 == result.errors.size());
}

}  // namespace

TEST_CASE("propagation: every option of every command refuses what is out of its range") {
  const std::vector<std::string> network{
      "--tokens",    "--depth",     "--alpha",      "--alpha-A", "--alpha-M", "--sigma-w", "--sigma-A",
      "--sigma-out", "--mlp-depth", "--activation", "--skip",    "--skip-A",  "--skip-M"},
      all{"nan", "inf", "-1", "-0.5", "1e300", "9223372036854775808", "x", "''"};
  // Large depths and gains have a limit.
  const auto may_be_large = [](const std::string& option) {
    return option == "--depth" || option == "--sigma-out";
  };
  const auto is_large = [](const std::string& value) { return value == "1e300" || value.size() > 10; };
  for (const std::string& option : network)
    for (const std::string& value : all)
      if (!may_be_large(option) || !is_large(value)) check_option_refused("exponents", option, value);
  for (const std::string command :
       {"trajectory", "phase", "critical", "simulate trajectory", "simulate histograms", "simulate angle",
        "simulate gradient", "simulate phase", "simulate groups"})
    for (const std::string& option : network) check_option_refused(command, option, "nan");
  for (const std::string value : {"0", "nan", "-3", "1e300", "9223372036854775808"}) {
    for (const std::string option : {"--q0", "--width", "--networks", "--seed", "--threads"})
      if (!(value == "0" && (option == "--seed" || option == "--threads")) &&
          !(option == "--q0" && is_large(value)) && !(option == "--seed" && value.size() > 10))
        check_option_refused("simulate trajectory", option, value);
    check_option_refused("fit none.csv", "--bootstrap", value);
    check_option_refused("fit none.csv", "--classes", value);
    if (!is_large(value)) check_option_refused("critical", "--tolerance", value);
  }
}
