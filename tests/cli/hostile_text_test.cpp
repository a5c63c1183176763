// Names that others wrote, where gnuplot, a terminal, a browser, a spreadsheet or a shell would obey them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/output/output_folder.hpp"
#include "cli/output/text_parts.hpp"
#include "cli/plots/confusion_picture.hpp"
#include "cli/plots/gnuplot.hpp"
#include "cli/plots/reliability_picture.hpp"
#include "cli/program.hpp"
#include "cli/program/run_context.hpp"
#include "cli/report/html.hpp"
#include "widelimit/results/picture.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::testing {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

/// Each would make the file `mark` where something obeys it.
Texts commands_that_make(const std::string& mark) {
  const std::string touch = "touch " + mark;
  return {"x\n!" + touch + "\n",
          "x'\n!" + touch + "\n'",
          "\n! " + touch,
          "end\n!" + touch + "\n",
          "EOD\nsystem('" + touch + "')\n",
          "`" + touch + "`",
          "$(" + touch + ")",
          "'; system('" + touch + "'); '",
          "\"; system(\"" + touch + "\"); \"",
          "x\\\n!" + touch + "\n",
          "\r!" + touch + "\r",
          "'.system('" + touch + "').'",
          "@mark ${" + touch + "}",
          "<img src=x onerror='x'>",
          "=cmd|' /C " + touch + "'!A1",
          "50% of %s %n %g",
          "{/=90 big}^2_3 \\",
          "\x1b]0;title\x07\x1b[2J\u009b31m\u202e"};
}

bool is_clean(const std::string& text) { return visible_lines(text) == text; }

std::string csv_line(const Texts& fields) {
  std::string line;
  for (const std::string& field : fields) {
    line += line.empty() ? "\"" : ",\"";
    for (const char c : field) line += c == '"' ? std::string("\"\"") : std::string(1, c);
    line += '"';
  }
  return line + "\n";
}

/// As every shell reads it; shell_quoted() is for those of people.
std::string in_shell(const std::string& word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string(R"('\'')") : std::string(1, c);
  return quoted + "'";
}

/// What gnuplot draws, as text: an SVG.
std::string drawn(const std::string& script) {
  const TemporaryFolder folder;
  cli::draw_output_file(folder / "picture.svg", script, {});
  REQUIRE(fs::exists(folder / "picture.svg"));
  return file_text(folder / "picture.svg");
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// A text of an SVG as people read it: without tags and entities.
std::string read_by_people(std::string text) {
  for (std::size_t begin = text.find('<'); begin != std::string::npos; begin = text.find('<'))
    text.erase(begin, text.find('>', begin) + 1 - begin);
  replace_all(text, "&lt;", "<");
  replace_all(text, "&gt;", ">");
  replace_all(text, "&amp;", "&");
  return text;
}

Texts texts_of(const std::string& svg) {
  constexpr std::string_view open = "<text", close = "</text>";
  Texts texts;
  for (std::size_t begin = svg.find(open); begin != std::string::npos; begin = svg.find(open, begin)) {
    begin = svg.find('>', begin) + 1;
    texts.push_back(read_by_people(svg.substr(begin, svg.find(close, begin) - begin)));
  }
  return texts;
}

bool holds(const Texts& texts, const std::string& one) {
  return std::ranges::find(texts, one) != texts.end();
}

/// One picture of many labels, each of which must be drawn as visible_text() shows it.
void check_labels(const Texts& labels) {
  std::string script = "set terminal pngcairo size 800,600 noenhanced font ',11'\n";
  for (const std::string& label : labels)
    script += fmt::format("set label {} at graph 0.5, graph 0.5 noenhanced\n", cli::gnuplot_quoted(label));
  const Texts texts = texts_of(drawn(script + "plot [0:1] x notitle\n"));
  for (const std::string& label : labels) {
    CAPTURE(label);
    CHECK(holds(texts, visible_text(label)));
  }
}

}  // namespace

TEST_CASE("hostile names: a table's classes and a network's name run nothing, and pictures show them") {
  const TemporaryFolder folder;
  const std::string mark = (folder / "mark").string();
  const Texts names = commands_that_make(mark);
  std::string table = csv_line({names[0], "a", "b", "kind"});
  const int rows = 8 * static_cast<int>(names.size());
  for (int i = 0; i < rows; ++i)
    table +=
        csv_line({names[static_cast<std::size_t>(i + 1) % names.size()], std::to_string(std::sin(3.1 * i)),
                  std::to_string(std::cos(2.3 * i)), names[static_cast<std::size_t>(i) % names.size()]});
  std::ofstream(folder / "table.csv") << table;
  const nlohmann::json network{{"widelimit", 1},
                               {"name", names[0] + names[5]},
                               {"layers", {{{"layer", "dense"}}, {{"layer", "relu"}}, {{"layer", "dense"}}}}};
  std::ofstream(folder / "net.json") << network;
  const std::string data = " --data csv --target kind --seed 1 --id " + in_shell(names[0]) + " --path " +
                           (folder / "table.csv").string() + " --network " + (folder / "net.json").string();
  const auto run = run_program("gp" + data + " --out " + (folder / "out").string());
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  CHECK(run.errors.find("not drawn") == std::string::npos);
  CHECK_FALSE(fs::exists(mark));
  CHECK(fs::exists(folder / "out/confusion_nngp.png"));
  for (const std::string& text : {run.output, run.errors, file_text(folder / "out/predictions.csv"),
                                  file_text(folder / "out/report.html")})
    CHECK(is_clean(text));
  CHECK(file_text(folder / "out/report.html").find("<img src=x") == std::string::npos);
  const auto lines = lines_of(file_text(folder / "out/predictions.csv"));
  for (const std::string& line : lines) CHECK(line.find(",=cmd") == std::string::npos);
  CHECK(std::ranges::any_of(lines,
                            [](const std::string& line) { return line.find("'=cmd") != std::string::npos; }));
  // The names themselves are kept where texts are data.
  CHECK(nlohmann::json::parse(file_text(folder / "out/results.json"))["classes"].size() == names.size());

  const auto fitted = run_program("fit" + data + " --model " + (folder / "model").string() +
                                  " --reliability " + (folder / "r.png").string());
  CAPTURE(fitted.errors);
  CHECK_FALSE(fs::exists(mark));
  CHECK(is_clean(fitted.output + fitted.errors));
}

TEST_CASE("hostile names: several networks have folders of visible names") {
  const TemporaryFolder folder;
  const auto network = [&](const char* file, const std::string& name) {
    const nlohmann::json json{
        {"widelimit", 1}, {"name", name}, {"layers", {{{"layer", "flatten"}}, {{"layer", "dense"}}}}};
    std::ofstream(folder / file) << json;
    return " --network " + (folder / file).string();
  };
  const auto run =
      run_program("gp --data sample --train 10 --validation 10 --test 10 --size 4 --no-pictures --out " +
                  (folder / "out").string() + network("1.json", std::string("..\0", 3)) +
                  network("2.json", "a\n\x1b[0m/b"));
  CAPTURE(run.errors);
  REQUIRE(run.code == 0);
  CHECK(fs::exists(folder / "out/..\\x00/results.json"));
  CHECK(fs::exists(folder / "out/a\\n\\x1b[0m_b/results.json"));
}

TEST_CASE("hostile names: gnuplot draws every byte, and pairs of those that it could obey, as visible text") {
  Texts labels;
  for (int byte = 0; byte < 256; ++byte) labels.push_back(std::string("a") + static_cast<char>(byte) + "1z");
  check_labels(labels);
  const std::string obeyed = "\n\r\\'\"`@$(){}[]%!#;|&<>^_~*=:\t\b ";
  labels.clear();
  for (const char first : obeyed)
    for (const char second : obeyed) labels.push_back(std::string("a") + first + second + "7");
  check_labels(labels);
  labels = {"K\u00e4se \u20ac \U0001F600", std::string(3000, 'x'), "\\", "end\\", "'", "\"", "a\\\n'"};
  check_labels(labels);
}

TEST_CASE("hostile names: titles, tics, axes and keys of all pictures run nothing and show them") {
  const TemporaryFolder folder;
  const std::string mark = (folder / "mark").string();
  for (const std::string& name : commands_that_make(mark)) {
    CAPTURE(name);
    const std::string shown = visible_text(name);
    gp::ConfusionMatrix matrix(2, 2);
    matrix << 3, 1, 2, 4;
    const Texts confusion = texts_of(drawn(cli::confusion_script(matrix, name, {name + "0", name + "1"})));
    CHECK(holds(confusion, shown));
    CHECK(holds(confusion, shown + "0"));
    CHECK(holds(confusion, shown + "1"));
    gp::Calibration calibration;
    calibration.bins = {{.lower = 0, .upper = 1, .count = 3, .mean_confidence = 0.5, .accuracy = 0.4}};
    calibration.expected_error = 0.1;
    const Texts reliability = texts_of(drawn(cli::reliability_script({{name, calibration}}, name)));
    CHECK(holds(reliability, shown));
    CHECK(holds(reliability, shown + ": ECE 0.1000"));
    const results::Panel panel{
        .title = name + "t",
        .x = {.label = name + "x", .named_tics = {{0, name + "i"}}},
        .y = {.label = name + "y"},
        .notes = {{.text = name + "n", .x = 0.5, .y = 1.5}},
        .series = {{.columns = {{0, 1}, {1, 2}}, .name = name + "k"},
                   {.draw = results::Draw::labels, .columns = {{0}, {1}}, .texts = {name + "l"}}}};
    const Texts texts = texts_of(drawn(results::gnuplot_script({.panels = {panel, panel}, .title = name})));
    for (const char* part : {"", "t", "x", "i", "y", "n", "k", "l"}) CHECK(holds(texts, shown + part));
    CHECK_FALSE(fs::exists(mark));
  }
}

TEST_CASE("hostile settings: neither files of settings nor variables of gnuplot have a say") {
  const TemporaryFolder folder;
  const std::string mark = (folder / "mark").string(), name = folder.string();
  for (const char* file : {".gnuplot", ".gnuplotrc", ".gnuplot_history", "gnuplotrc"})
    std::ofstream(folder / file) << "!touch " << mark << "\nset title 'mine'\n";
  const auto run = run_script("cd '" + name + "'; export HOME='" + name + "' XDG_CONFIG_HOME='" + name +
                              "' GNUTERM='dumb' GNUPLOT_LIB='" + name + "' GNUPLOT_DRIVER_DIR='" + name +
                              "' GDFONTPATH='" + name + "' FIT_SCRIPT='!touch " + mark +
                              "'; \"$WIDELIMIT\" propagation trajectory --depth 3 --out t.csv --plot t.svg");
  CHECK(run.errors.empty());
  CHECK(run.code == 0);
  CHECK_FALSE(fs::exists(mark));
  CHECK(file_text(folder / "t.svg").find("mine") == std::string::npos);
}

TEST_CASE("hostile paths: outputs lie where they were asked for, and nothing else is made") {
  const TemporaryFolder folder;
  const std::string mark = (folder / "mark").string();
  for (std::string name : commands_that_make("mark")) {
    std::replace(name.begin(), name.end(), '/', '_');
    CAPTURE(name);
    const std::string path = (folder / name).string();
    const auto plot = run_program("propagation trajectory --depth 2 --out " + in_shell(path + ".csv") +
                                  " --plot " + in_shell(path + ".svg"));
    CHECK(plot.code == 0);
    CHECK(is_clean(plot.output + plot.errors));
    CHECK(file_text(path + ".svg").starts_with("<?xml"));
    const auto again = run_script("PATH=/nonexistent \"$WIDELIMIT\" propagation trajectory --depth 2 --out " +
                                  in_shell(path + ".csv") + " --plot " + in_shell(path + ".png"));
    CHECK(again.code == 0);
    CHECK(lines_of(again.errors).size() == 1);
    CHECK(is_clean(again.errors));
    const auto missing = run_program("gram fcn --x " + in_shell(path + ".npy") + " --out " + in_shell(path));
    CHECK(missing.code != 0);
    CHECK(lines_of(missing.errors).size() == 1);
    CHECK(is_clean(missing.errors));
    CHECK(missing.errors.find(visible_text(path + ".npy")) != std::string::npos);
  }
  CHECK_FALSE(fs::exists(mark));
}

TEST_CASE("hostile arguments: every word comes back from a shell, from run.json and from a rerun") {
  Texts words{"program"};
  std::string all;
  for (int byte = 1; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    words.push_back(std::string("a") + static_cast<char>(byte) + "7");
  }
  words.push_back(all);
  for (const char first : std::string("\n'\\$ \"`!"))
    for (const char second : std::string("\n'\\$ \"`!")) words.push_back({first, second});
  const std::string line = cli::shell_command_line(words);
  CHECK(is_clean(line));
  CHECK(line.find('\n') == std::string::npos);
  CHECK(cli::shell_words(line) == words);
  const TemporaryFolder folder;
  std::ofstream(folder / "words") << "printf '%s\\0' " << line;
  const auto printed = run_script("bash '" + (folder / "words").string() + "'");
  std::string expected;
  for (const std::string& word : words) expected += word + std::string(1, '\0');
  CHECK(printed.output == expected);
  for (const char* torn : {"a\\", "'a", "$'a", "$'a\\", "$'\\1", "$'", "$", ""})
    CHECK_NOTHROW(cli::shell_words(torn));

  for (const std::string& name : commands_that_make("mark")) {
    CAPTURE(name);
    if (name.find('/') != std::string::npos) continue;
    fs::copy(WIDELIMIT_SOURCE_DIR "/data/images/x.npy", folder / (name + ".npy"));
    const std::string go = "cd '" + folder.string() + "' && \"$WIDELIMIT\" ";
    REQUIRE(
        run_script(go + "gram fcn --x " + in_shell("./" + name + ".npy") + " --out " + in_shell("./" + name))
            .code == 0);
    const auto arguments = nlohmann::json::parse(file_text(folder / (name + "/run.json")))["arguments"];
    CHECK(arguments == nlohmann::json{"gram", "fcn", "--x", "./" + name + ".npy", "--out", "./" + name});
    const auto again = run_script(go + "rerun " + in_shell("./" + name));
    CHECK(again.code == 0);
    CHECK(is_clean(again.output + again.errors));
  }
  CHECK_FALSE(fs::exists(folder / "mark"));
}

TEST_CASE("hostile arguments: bytes that are not UTF-8 are refused before the work, in words") {
  const TemporaryFolder folder;
  const auto refused = run_script("\"$WIDELIMIT\" networks \"$(printf 'a\\377\\033')\"");
  CHECK(refused.code == 1);
  CHECK(refused.errors.find(R"(argument 2, 'a\xff\x1b': expected UTF-8)") != std::string::npos);
  fs::create_directory(folder / "caf\xe9");
  const auto inside = run_script("cd '" + folder.string() +
                                 "'/caf* && \"$WIDELIMIT\" gram fcn --x '" WIDELIMIT_SOURCE_DIR
                                 "/data/images/x.npy' --out out");
  CHECK(inside.code == 1);
  CHECK(inside.errors.find("caf\\xe9: the working directory is kept in run.json") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "caf\xe9/out"));
}

TEST_CASE("hostile errors: messages are one line of visible text") {
  const TemporaryFolder folder;
  std::ofstream(folder / "net.json") << R"({"widelimit": 1, "layers": [{"layer": "\u001b[31mdense\u009b"}]})";
  std::ofstream(folder / "t.csv") << "\"a\x1b[2J\",\"b\nc\"\n1,2\nx\x1b]0;t\x07,3\n";
  const std::string table = (folder / "t.csv").string();
  for (const std::string& arguments :
       {"networks " + (folder / "net.json").string(), in_shell("\x1b[31mgram\n"),
        in_shell("gram") + " " + in_shell("--\x1b[0m"),
        "gp --network fcn --data csv --path " + table + " --target " + in_shell("\x1b[31mred"),
        "gp --network fcn --data csv --path " + table + " --target " + in_shell("b\nc"),
        "gram " + in_shell("fcn:\x1b[1m=3\n") + " --x x.npy",
        "rerun " + in_shell((folder / "\x1b[0m").string())}) {
    CAPTURE(arguments);
    const auto failed = run_program(arguments);
    CHECK(failed.code != 0);
    CHECK(lines_of(failed.errors).size() == 1);
    CHECK(is_clean(failed.errors));
    CHECK(is_clean(failed.output));
  }
}

TEST_CASE("hostile variables: doctor shows them") {
  for (const char* json : {"", " --json"}) {
    const auto told =
        run_script("export OMP_X=\"$(printf 'a\\033[2J\\377b')\"; \"$WIDELIMIT\" doctor" + std::string(json));
    CHECK(told.code == 0);
    CHECK(is_clean(told.output));
    CHECK(told.output.find(*json == '\0' ? R"(a\x1b[2J\xffb)" : R"(a\\x1b[2J\\xffb)") != std::string::npos);
  }
}

TEST_CASE("hostile fields: CSV has one line a row, and no text that a spreadsheet computes") {
  CHECK(cli::csv_field("plain") == "plain");
  CHECK(cli::csv_field("a,b") == "\"a,b\"");
  CHECK(cli::csv_field("say \"a\"") == "\"say \"\"a\"\"\"");
  CHECK(cli::csv_field("two\nlines\r") == R"(two\nlines\r)");
  CHECK(cli::csv_field("=1+1") == "'=1+1");
  CHECK(cli::csv_field("@SUM(A1)") == "'@SUM(A1)");
  CHECK(cli::csv_field("+cmd|x,y") == "\"'+cmd|x,y\"");
  CHECK(cli::csv_quoted("-x\"") == "\"'-x\"\"\"");
  for (const char* number : {"-1", "+1", "-0.5e3", "-inf"}) CHECK(cli::csv_field(number) == number);
  CHECK(cli::csv_field("").empty());
}

TEST_CASE("hostile fields: HTML holds no tag, quote or character that is not allowed") {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string html = cli::html_escaped(std::string("a") + static_cast<char>(byte) + "b");
    CHECK(html.find_first_of("<>\"'") == std::string::npos);
    CHECK(is_clean(html));
  }
}

TEST_CASE("hostile scripts: completion hands shells no words to run") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = run_program(std::string("completion ") + shell).output;
    CHECK(script.find('`') == std::string::npos);
    // The script's own substitutions alone.
    std::string others = script;
    replace_all(others, "($(compgen ", "");
    CHECK(others.find("$(") == std::string::npos);
    CHECK(is_clean(script));
  }
}

}  // namespace widelimit::testing
