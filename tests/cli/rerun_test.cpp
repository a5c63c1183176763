#include <doctest/doctest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/program.hpp"
#include "cli/program/run_context.hpp"

using nlohmann::json;
using widelimit::testing::file_text;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

const std::string gram = "gram fcn:depth=2 --x '" WIDELIMIT_SOURCE_DIR "/data/images/x.npy'";

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("shell lines: words come back as they were") {
  const std::vector<std::string> words = {"widelimit", "gp", "a b",   "it's", "",
                                          "--x=1,2",   "\\", "\"q\"", "'"};
  CHECK(widelimit::cli::shell_words(widelimit::cli::shell_command_line(words)) == words);
}

TEST_CASE("rerun: a folder is made again, with the same bits, from the directory of its run") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "it's here");
  fs::copy(WIDELIMIT_SOURCE_DIR "/data/images/x.npy", folder / "it's here/x.npy");
  const std::string go = "cd '" + folder.string() + "'/\"it's here\" && ";
  REQUIRE(run_script(go + "\"$WIDELIMIT\" gram fcn:depth=2 --x x.npy --out 'my results'").code == 0);
  const fs::path results = folder / "it's here/my results";
  const std::string nngp = file_text(results / "nngp.npy"), record = file_text(results / "run.json");
  const json arguments = json::parse(record).at("arguments");
  CHECK(arguments == json{"gram", "fcn:depth=2", "--x", "x.npy", "--out", "my results"});
  write(results / "nngp.npy", "spoilt");
  const ProgramResult again = run_script("cd / && \"$WIDELIMIT\" rerun \"" + results.string() + "\"");
  CHECK(again.code == 0);
  CHECK(again.errors.find("gram fcn:depth=2 --x x.npy --out 'my results'") != std::string::npos);
  // It was spoilt before.
  CHECK(again.errors.ends_with("my results: 1 of 2 files have the same bits as before; 1 other: nngp.npy\n"));
  CHECK(file_text(results / "nngp.npy") == nngp);
  CHECK(file_text(results / "run.json") == record);
  const ProgramResult printed =
      run_script("cd / && \"$WIDELIMIT\" rerun --json \"" + results.string() + "\" --quiet");
  CHECK(printed.code == 0);
  CHECK(json::parse(printed.output).size() == 2);
  CHECK(printed.errors.find("gram fcn:depth=2") != std::string::npos);
  CHECK(std::count(printed.errors.begin(), printed.errors.end(), '\n') == 2);  // No progress.
}

TEST_CASE("rerun: the run.json of a folder stands for the folder") {
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  REQUIRE(run_program(gram + " --out '" + out + "'").code == 0);
  const ProgramResult again = run_program("rerun '" + out + "/run.json'");
  CHECK(again.code == 0);
  CHECK(again.errors.ends_with(out + ": 2 of 2 files have the same bits as before\n"));
  const ProgramResult nothing = run_program("rerun '" + out + "/none/run.json'");
  CHECK(nothing.code == 1);
  CHECK(nothing.errors.find("/none/run.json") != std::string::npos);
  CHECK(nothing.errors.find("run.json/run.json") == std::string::npos);
}

TEST_CASE("rerun --out: the results go to another folder, and are compared with those that there are") {
  const TemporaryFolder folder;
  const std::string first = (folder / "first").string(), second = (folder / "second").string();
  REQUIRE(run_program(gram + " --out '" + first + "'").code == 0);
  const std::string record = file_text(folder / "first/run.json");
  const auto same = run_program("rerun '" + first + "' --out '" + second + "'");
  CHECK(same.code == 0);
  CHECK(same.errors.ends_with(second + ": 2 of 2 files have the same bits as in " + first + "\n"));
  CHECK(file_text(folder / "first/run.json") == record);
  CHECK(file_text(folder / "second/ntk.npy") == file_text(folder / "first/ntk.npy"));
  write(folder / "first/ntk.npy", "others");
  const auto other = run_program("rerun '" + first + "' '--out=" + second + "'");
  CHECK(other.errors.ends_with(second + ": 1 of 2 files have the same bits as in " + first +
                               "; 1 other: ntk.npy\n"));
  CHECK(file_text(folder / "first/ntk.npy") == "others");
}

TEST_CASE("rerun: a stranger's run.json writes nothing outside of its folder, unless it is trusted") {
  const TemporaryFolder folder;
  const fs::path victim = folder / "victim", strange = folder / "strange";
  fs::create_directory(victim);
  fs::create_directory(strange);
  write(victim / "nngp.npy", "mine");
  const std::string x = WIDELIMIT_SOURCE_DIR "/data/images/x.npy";
  const auto attack = [&](const json& arguments) {
    write(strange / "run.json", json{{"arguments", arguments},
                                     {"directory", strange.string()},
                                     {"files", {"../victim/nngp.npy", "/etc/passwd"}}}
                                    .dump());
    return run_program("rerun '" + strange.string() + "'");
  };
  fs::create_directory_symlink(victim, strange / "link");
  for (const json& arguments :
       {json{"gram", "fcn", "--x", x, "--force", "--out", victim.string()},
        json{"gram", "fcn", "--x", x, "--force", "--out=../victim"},
        json{"gram", "fcn", "--x", x, "--force", "--out", "link"},
        json{"gram", "fcn", "--x", x, "--store", (victim / "store").string()},
        json{"gram", "fcn", "--x", x, "--out", (folder / "new/folder").string()},
        json{"propagation", "trajectory", "--plot", (victim / "nngp.png").string()},
        json{"propagation", "trajectory", "--out", (victim / "nngp.csv").string()},
        json{"fit", "--data", "sample", "--train", "20", "--network", "fcn", "--model",
             (victim / "model").string()},
        json{"gp", "--data", "sample", "--train", "20", "--test", "10", "--regulariser", "0.1", "--network",
             "fcn", "--gram", (victim / "grams").string()}}) {
    CAPTURE(arguments.dump());
    const auto refused = attack(arguments);
    CAPTURE(refused.errors);
    CHECK(refused.code != 0);
    CHECK(file_text(victim / "nngp.npy") == "mine");
    CHECK(std::distance(fs::directory_iterator(victim), {}) == 1);
    CHECK_FALSE(fs::exists(folder / "new"));
  }
  // A store within the folder, parts of which are links to places outside.
  for (const std::string part : {"nngp/claims", "nngp/records", "nngp/c", "ntk"}) {
    CAPTURE(part);
    const json arguments{"gram", "fcn", "--x", x, "--store", "store"};
    REQUIRE(attack(arguments).code == 0);
    fs::remove_all(strange / "store" / part);
    if (part != "ntk") fs::remove_all(strange / "store/ntk/c");  // Something to compute.
    fs::create_symlink(part == "nngp/claims" ? victim / "nngp.npy" : victim, strange / "store" / part);
    CHECK(attack(arguments).code != 0);
    CHECK(file_text(victim / "nngp.npy") == "mine");
    CHECK(std::distance(fs::directory_iterator(victim), {}) == 1);
    fs::remove_all(strange / "store");
  }
  const auto refused = attack({"gram", "fcn", "--x", x, "--force", "--out", victim.string()});
  CHECK(refused.errors.find(
            victim.string() + ": lies outside of " + strange.string() +
            ", the only folder that this run may write to; give --out FOLDER, or add --yes if you "
            "trust the run.json that asks for it") != std::string::npos);
  CHECK(run_program("rerun '" + strange.string() + "' --out '" + (folder / "safe").string() + "'").code == 0);
  CHECK(file_text(victim / "nngp.npy") == "mine");
  const auto trusted = run_program("rerun --yes '" + strange.string() + "'");
  CHECK(trusted.code == 0);
  CHECK(file_text(victim / "nngp.npy") != "mine");
  CHECK(trusted.errors.find("0 of 0 files") != std::string::npos);
  fs::remove(strange / "run.json");
  REQUIRE(mkfifo((strange / "run.json").c_str(), 0600) == 0);
  CHECK(run_program("rerun '" + strange.string() + "'").errors.find("expected a regular file") !=
        std::string::npos);
}

TEST_CASE("rerun: what cannot be run again is said") {
  const TemporaryFolder folder;
  const auto fails = [&](const std::string& arguments, const std::string& message) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code != 0);
    CHECK(result.errors.find(message) != std::string::npos);
  };
  fails("rerun '" + folder.string() + "'", "run.json");
  fails("rerun", "folder is required");
  fails("rerun a b", "(see --help)");
  write(folder / "run.json", R"({"arguments": ["networks"]})");
  fails("rerun '" + folder.string() + "' --out other", "has no --out that another folder could replace");
  write(folder / "run.json", R"({"arguments": ["gram", 3]})");
  fails("rerun '" + folder.string() + "'", "expected a list of arguments, each a text");
  write(folder / "run.json", R"({"arguments": ["networks"], "directory": "/no/such/place"})");
  fails("rerun '" + folder.string() + "'", "the run was begun in /no/such/place, which cannot be entered");
  CHECK(run_program("rerun --help").code == 0);
}

TEST_CASE("config: the arguments of a file stand for themselves, beside others") {
  const TemporaryFolder folder;
  const std::string file = (folder / "arguments.json").string();
  const auto text_of = [&](const std::string& out) { return file_text(folder / out / "ntk.npy"); };
  REQUIRE(run_program(gram + " --out '" + (folder / "a").string() + "'").code == 0);
  write(file, json{"fcn:depth=2", "--x", WIDELIMIT_SOURCE_DIR "/data/images/x.npy"}.dump());
  REQUIRE(run_program("gram --config '" + file + "' --out '" + (folder / "b").string() + "'").code == 0);
  CHECK(text_of("a") == text_of("b"));
  // run.json itself, whose --out stands twice unless that is left to it.
  const std::string record = (folder / "a/run.json").string();
  fs::remove(folder / "a/ntk.npy");
  REQUIRE(run_program("gram --config='" + record + "'").code == 0);
  CHECK(text_of("a") == text_of("b"));
  const auto fails = [&](const std::string& arguments, const std::string& message) {
    const ProgramResult result = run_program(arguments);
    CHECK(result.code != 0);
    CHECK(result.errors.find(message) != std::string::npos);
  };
  fails("gram --config '" + record + "' --out elsewhere", "--out is in the file and on the command line");
  fails("gram --out=elsewhere --config='" + record + "'", "--out is in the file and on the command line");
  fails("fit --config '" + record + "'", "holds the arguments of \"gram\", expected those of \"fit\"");
  fails("gram --config '" + file + "x'", "arguments.jsonx");
  fails("gram --config", "--config");
  write(file, "{}");
  fails("gram --config '" + file + "'", "expected a list of arguments");
}
