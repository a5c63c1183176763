#include "cli/output/output_folder.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/program.hpp"
#include "support/error_message.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/folder_lock.hpp"
#include "widelimit/version.hpp"

using namespace widelimit;
using nlohmann::json;
using widelimit::testing::file_text;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::run_script;
using widelimit::testing::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

using Names = std::set<std::string>;

/// All files in a folder, by their paths in it.
Names files_in(const fs::path& folder) {
  Names names;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (!entry.is_directory()) names.insert(entry.path().lexically_relative(folder).string());
  return names;
}

json record_in(const fs::path& folder) { return json::parse(file_text(folder / "run.json")); }

/// The files that run.json lists, and itself.
Names listed_in(const fs::path& folder) {
  Names names = record_in(folder)["files"].get<Names>();
  names.insert("run.json");
  return names;
}

/// Inputs of Gram matrices that are computed at once, or take minutes.
class GramFolder : public TemporaryFolder {
 public:
  explicit GramFolder(std::size_t inputs = 3, std::size_t size = 4) {
    auto x = xt::xarray<double>::from_shape({inputs, size, size, 2});
    double value = 0;
    for (double& entry : x) entry = std::sin(++value);
    data::write_npy(*this / "x.npy", x);
  }

  [[nodiscard]] std::string arguments(const std::string& options = "") const {
    return "gram conv-gap:depth=8 --x " + (*this / "x.npy").string() + " --out " + out().string() + " " +
           options;
  }
  [[nodiscard]] fs::path out() const { return *this / "out"; }
};

void check_refused(const ProgramResult& result, const std::string& part) {
  CAPTURE(result.errors);
  CHECK(result.code == 1);
  CHECK(result.errors.find("widelimit: ") == 0);
  CHECK(result.errors.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("output folder: run.json says what was run, on what, and which files it wrote") {
  const GramFolder folder;
  REQUIRE(run_program(folder.arguments("--kernel nngp")).code == 0);
  CHECK(files_in(folder.out()) == Names{"nngp.npy", "run.json"});
  const json record = record_in(folder.out());
  CHECK(record["widelimit"] == version);
  const std::string command = record["command"];
  CHECK(command.ends_with("widelimit " + folder.arguments("--kernel nngp")));
  CHECK(record["network"]["name"] == "conv-gap");
  CHECK(record["shapes"] == json{{"x", {3, 4, 4, 2}}});
  CHECK(record["files"] == json{"nngp.npy"});
}

TEST_CASE("output folder: the command in run.json is one that a shell understands") {
  const TemporaryFolder folder;
  std::ofstream(folder / "it's a $HOME.json") << R"({"model": "mlp", "horizon": 0.1,
    "tokens": 2, "paths": 8})";
  const auto result =
      run_script("cd " + folder.string() +
                 " && \"$WIDELIMIT\" sde simulate \"it's a \\$HOME.json\" --no-pictures --out 'my out'");
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const std::string command = record_in(folder / "my out")["command"];
  CHECK(run_script("cd " + folder.string() + " && " + command).code == 0);
}

TEST_CASE("output folder: a second run leaves no file of the first that it did not write") {
  const GramFolder folder;
  REQUIRE(run_program(folder.arguments("--kernel both")).code == 0);
  CHECK(files_in(folder.out()) == Names{"nngp.npy", "ntk.npy", "run.json"});
  const std::string first = file_text(folder.out() / "nngp.npy");
  REQUIRE(run_program(folder.arguments("--kernel nngp --precision double")).code == 0);
  CHECK(files_in(folder.out()) == Names{"nngp.npy", "run.json"});
  CHECK(listed_in(folder.out()) == files_in(folder.out()));
  CHECK(file_text(folder.out() / "nngp.npy") != first);
}

TEST_CASE("output folder: networks that are gone take their folders with them") {
  const TemporaryFolder folder;
  const std::string end =
      " --data sample --train 20 --validation 10 --test 10 --size 4 --kernel nngp --no-pictures"
      " --out " +
      (folder / "out").string();
  REQUIRE(run_program("gp --network fcn --network conv-gap:depth=1" + end).code == 0);
  CHECK(listed_in(folder / "out") == files_in(folder / "out"));
  CHECK(listed_in(folder / "out/fcn") == files_in(folder / "out/fcn"));
  CHECK(record_in(folder / "out")["network"].size() == 2);
  CHECK(record_in(folder / "out/conv-gap")["network"]["name"] == "conv-gap");
  CHECK(record_in(folder / "out")["shapes"]["train"] == json{20, 4, 4, 3});
  // The files of the second network go when the first one is written, and come again.
  REQUIRE(run_program("gp --network fcn --network conv-gap:depth=1" + end).code == 0);
  CHECK(listed_in(folder / "out") == files_in(folder / "out"));
  REQUIRE(run_program("gp --network fcn --network struct:depth=1" + end).code == 0);
  CHECK_FALSE(fs::exists(folder / "out/conv-gap"));
  CHECK(listed_in(folder / "out") == files_in(folder / "out"));
  REQUIRE(run_program("gp --network fcn" + end).code == 0);
  CHECK_FALSE(fs::exists(folder / "out/struct"));
  CHECK_FALSE(fs::exists(folder / "out/fcn"));
  CHECK(listed_in(folder / "out") == files_in(folder / "out"));
}

TEST_CASE("output folder: other files are refused at once, and stay with --force") {
  // These would take minutes.
  const GramFolder folder(300, 32);
  fs::create_directories(folder.out() / "notes");
  std::ofstream(folder.out() / "mine.txt") << "mine";
  std::ofstream(folder.out() / "notes/deep.txt") << "mine";
  const auto begin = std::chrono::steady_clock::now();
  check_refused(run_program(folder.arguments()),
                "out: holds files that are not of an earlier run (mine.txt, notes)");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(5));
  CHECK(files_in(folder.out()) == Names{"mine.txt", "notes/deep.txt"});

  const GramFolder quick;
  fs::create_directories(quick.out());
  std::ofstream(quick.out() / "mine.txt") << "mine";
  REQUIRE(run_program(quick.arguments("--force")).code == 0);
  CHECK(files_in(quick.out()) == Names{"mine.txt", "nngp.npy", "ntk.npy", "run.json"});
  CHECK(listed_in(quick.out()) == Names{"nngp.npy", "ntk.npy", "run.json"});
  check_refused(run_program(quick.arguments()), "(mine.txt)");
  // A run.json of somebody else lists nothing of ours, whatever it says.
  fs::remove(quick.out() / "mine.txt");
  std::ofstream(quick.out() / "run.json") << R"({"files": ["nngp.npy", "ntk.npy"]})";
  check_refused(run_program(quick.arguments()), "(nngp.npy, ntk.npy, run.json)");
}

TEST_CASE("output folder: what a killed run left half written is no other file, and is removed") {
  const GramFolder folder;
  fs::create_directories(folder.out());
  // No process has this number: it is above what Linux gives.
  std::ofstream(folder.out() / "nngp.npy.99999999-0.part") << "half";
  REQUIRE(run_program(folder.arguments()).code == 0);
  CHECK(files_in(folder.out()) == Names{"nngp.npy", "ntk.npy", "run.json"});
  // Of a process that runs, or of a file that this command does not write, they are somebody's.
  for (const std::string& name :
       {fmt::format("ntk.npy.{}-0.part", getpid()), std::string("a.99999999-0.part")}) {
    std::ofstream(folder.out() / name) << "half";
    check_refused(run_program(folder.arguments()), "(" + name + ")");
    fs::remove(folder.out() / name);
  }
}

TEST_CASE("output folder: a run.json that lists files elsewhere removes none of them") {
  const GramFolder folder;
  fs::create_directories(folder.out());
  std::ofstream(folder / "precious") << "x";
  std::ofstream(folder.out() / "run.json")
      << R"({"widelimit": "0", "files": ["../precious", ")" + (folder / "precious").string() + "\"]}";
  REQUIRE(run_program(folder.arguments()).code == 0);
  CHECK(fs::exists(folder / "precious"));
  CHECK(listed_in(folder.out()) == Names{"nngp.npy", "ntk.npy", "run.json"});
}

TEST_CASE("output folder: what cannot be written shows before the work") {
  const GramFolder folder(300, 32);
  const auto begin = std::chrono::steady_clock::now();
  REQUIRE(mkfifo(folder.out().c_str(), 0600) == 0);
  check_refused(run_program(folder.arguments()), "out: cannot make this folder");
  check_refused(run_program(folder.arguments("--force")), "out: cannot make this folder");
  fs::remove(folder.out());
  fs::create_directories(folder.out() / "ntk.npy");
  check_refused(run_program(folder.arguments()), "(ntk.npy)");
  check_refused(run_program(folder.arguments("--force")),
                "ntk.npy: cannot be written: expected a regular file or none, found a folder or device");
  fs::remove(folder.out() / "ntk.npy");
  REQUIRE(mkfifo((folder.out() / "run.json").c_str(), 0600) == 0);
  check_refused(run_program(folder.arguments("--force")),
                "run.json: cannot be written: expected a regular file");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
}

TEST_CASE("output files: what cannot be written shows before the work") {
  const TemporaryFolder folder;
  // Minutes.
  std::ofstream(folder / "flow.json") << R"({"activation": "softmax1", "tokens": 8, "heads": 6, "tau": 1e5,
    "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "samples": 50000})";
  const fs::path fifo = folder / "fifo.csv", taken = folder / "taken.png";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  fs::create_directory(taken);
  const std::string heads = "heads flow " + (folder / "flow.json").string();
  const std::string phase = "propagation phase --x alpha:0.01:0.95:400 --y sigma_w:0.2:4:400";
  for (const std::string& command : {heads, phase}) {
    CAPTURE(command);
    check_refused(run_program(command + " --out " + fifo.string()), "fifo.csv: cannot be written");
    check_refused(
        run_program(command + " --out " + (folder / "a.csv").string() + " --plot " + taken.string()),
        "taken.png: cannot be written");
    check_refused(run_program(command + " --out " + (folder / "none/a.csv").string()),
                  "none/a.csv: its folder does not exist");
  }
  CHECK(files_in(folder.path()) == Names{"fifo.csv", "flow.json"});
}

TEST_CASE("output folder: at a limit of the files' size nothing is left behind") {
  const GramFolder folder(40);
  const auto limited = run_script("ulimit -f 8; \"$WIDELIMIT\" " + folder.arguments());
  check_refused(limited, "nngp.npy: cannot be written: failed to write nngp.npy.");
  CHECK_FALSE(fs::exists(folder.out()));
  REQUIRE(run_program(folder.arguments("--kernel nngp")).code == 0);
  const std::string before = file_text(folder.out() / "nngp.npy");
  check_refused(run_script("ulimit -f 8; \"$WIDELIMIT\" " + folder.arguments("--precision double")),
                "File too large");
  CHECK(files_in(folder.out()) == Names{"nngp.npy", "run.json"});
  CHECK(file_text(folder.out() / "nngp.npy") == before);
}

namespace {

using cli::OtherFiles;
using cli::OutputFolder;

std::map<std::string, std::string> texts_in(const fs::path& folder) {
  std::map<std::string, std::string> texts;
  for (const std::string& name : files_in(folder)) texts[name] = file_text(folder / name);
  return texts;
}

/// The files a, b and sub/c as one run writes them.
const std::vector<std::string> three_names{"a", "b", "sub/c"};

void write_three(OutputFolder& out, const std::string& text) {
  for (const std::string& name : three_names) out.write(name, text);
}

mode_t mode_of(const fs::path& path) {
  struct stat facts {};
  REQUIRE(lstat(path.c_str(), &facts) == 0);
  return facts.st_mode & 0777;
}

}  // namespace

TEST_CASE("output folder: a commit that fails in the middle leaves the earlier run as it was") {
  // Each file in turn cannot be replaced, or not be removed.
  for (const std::string blocked : {"a", "b", "sub/c", "run.json", "old", "gone/old"}) {
    CAPTURE(blocked);
    const TemporaryFolder folder;
    const fs::path place = folder / "out";
    {
      OutputFolder out(place, {"a", "b", "sub/c", "old", "gone/old"}, OtherFiles::refused);
      for (const char* name : {"a", "b", "sub/c", "old", "gone/old"}) out.write(name, "first");
      out.commit({"widelimit first", {}, {}});
    }
    std::string message;
    std::map<std::string, std::string> before;
    {
      OutputFolder out(place, three_names, OtherFiles::refused);
      write_three(out, "second");
      fs::remove(place / blocked);
      fs::create_directory(place / blocked);
      std::ofstream(place / blocked / "mine") << "mine";
      for (const auto& [name, text] : texts_in(place))
        if (!name.ends_with(".part")) before[name] = text;
      message = testing::error_message<DataError>([&] { out.commit({"widelimit second", {}, {}}); });
    }
    // Nothing has begun where run.json itself cannot be written.
    const bool has_begun = blocked != "run.json";
    CHECK(message.starts_with((place / blocked).string() +
                              (has_begun ? ": cannot be replaced" : ": cannot be written") +
                              ": expected a regular file"));
    CHECK(message.ends_with("all files are as they were") == has_begun);
    CHECK(texts_in(place) == before);
    // Without what is in the way, the next run has no trace of this one.
    fs::remove_all(place / blocked);
    OutputFolder out(place, three_names, OtherFiles::kept);
    write_three(out, "third");
    out.commit({"widelimit third", {}, {}});
    CHECK(file_text(place / "sub/c") == "third");
  }
}

TEST_CASE("output folder: of two runs at once the second is told, and the first goes on") {
  const TemporaryFolder folder;
  const fs::path place = folder / "out";
  OutputFolder first(place, three_names, OtherFiles::refused);
  const auto second = [&](OtherFiles others) {
    return testing::error_message<DataError>([&] { OutputFolder(place, three_names, others); });
  };
  for (const OtherFiles others : {OtherFiles::refused, OtherFiles::kept})
    CHECK(second(others) ==
          place.string() +
              ": another run writes to this folder: wait until it has ended, or choose another "
              "folder");
  check_refused(
      run_program("gram fcn --x '" WIDELIMIT_SOURCE_DIR "/data/images/x.npy' --out '" + place.string() + "'"),
      "another run writes to this folder");
  write_three(first, "first");
  first.commit({"widelimit first", {}, {}});
  CHECK(listed_in(place) == files_in(place));
}

TEST_CASE("output folder: what others put there while a run computes is not replaced") {
  const TemporaryFolder folder;
  for (const std::string& name : {std::string("a"), std::string("run.json")}) {
    const fs::path place = folder / ("out-" + name);
    {
      OutputFolder out(place, three_names, OtherFiles::refused);
      write_three(out, "first");
      std::ofstream(place / name) << "mine";
      CHECK(testing::error_message<DataError>([&] {
              out.commit({"widelimit first", {}, {}});
            }) == (place / name).string() +
                      ": has appeared while this run computed, and is not replaced; move it, and run again");
    }
    CHECK(file_text(place / name) == "mine");
    CHECK(files_in(place) == Names{name});
  }
}

TEST_CASE("output folder: of two models at once the second is told before it is fitted") {
  const TemporaryFolder folder;
  const files::FolderClaim first(folder / "model");
  check_refused(run_program("fit --network fcn --data sample --train 20 --size 4 --model '" +
                            (folder / "model").string() + "'"),
                "model: another run writes to this folder");
}

TEST_CASE("output folder: files and folders keep their modes, also those that go and come again") {
  const TemporaryFolder folder;
  const fs::path place = folder / "out";
  const std::vector<std::string> names{"a", "sub/c", "sub/run.json"};
  const auto run = [&](const std::string& text) {
    // As gp does with several networks: the first commit removes what the second one writes again.
    OutputFolder out(place, names, OtherFiles::refused);
    out.write("a", text);
    out.commit({"widelimit", {}, {}});
    out.write("sub/c", text);
    out.write_inner_record("sub/", {"widelimit", {}, {}});
    out.commit({"widelimit", {}, {}});
  };
  run("first");
  for (const std::string& name : files_in(place)) fs::permissions(place / name, fs::perms(0600));
  fs::permissions(place / "sub", fs::perms(0700));
  run("second");
  CHECK(file_text(place / "sub/c") == "second");
  for (const std::string& name : files_in(place)) CHECK_MESSAGE(mode_of(place / name) == 0600, name);
  CHECK(mode_of(place / "sub") == 0700);
}

TEST_CASE("output folder: modes of results, models, stores and files of tables stay") {
  const TemporaryFolder folder;
  const std::string x = "'" WIDELIMIT_SOURCE_DIR "/data/images/x.npy'",
                    data = " --data sample --train 20 --size 4 --quiet";
  const auto quoted = [&](const char* name) { return "'" + (folder / name).string() + "'"; };
  std::ofstream(folder / "flow.json") << R"({"activation": "softmax1", "tokens": 2, "heads": 1, "tau": 0.1,
    "prior": {"kind": "flip2", "nu1": 2, "nu2": 2}, "samples": 100})";
  const std::vector<std::string> commands{
      "gram fcn --x " + x + " --out " + quoted("gram"),
      "fit --network fcn" + data + " --model " + quoted("model"),
      "gram conv-gap:depth=1 --tile 10 --x " + x + " --store " + quoted("store"),
      "heads flow " + quoted("flow.json") + " --out " + quoted("flow.csv"),
      "propagation trajectory --out " + quoted("trajectory.csv")};
  for (const std::string& command : commands) REQUIRE_MESSAGE(run_program(command).code == 0, command);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    fs::permissions(entry.path(), fs::perms(entry.is_directory() ? 0700 : 0600));
  // Tiles are written again where they are damaged.
  for (const auto& entry : fs::recursive_directory_iterator(folder / "store/nngp/c"))
    if (entry.is_regular_file()) std::ofstream(entry.path()) << "damaged";
  for (const std::string& command : commands) REQUIRE_MESSAGE(run_program(command).code == 0, command);
  for (const auto& entry : fs::recursive_directory_iterator(folder.path()))
    if (entry.path().parent_path().filename() != "records")
      CHECK_MESSAGE(mode_of(entry.path()) == (entry.is_directory() ? 0700 : 0600), entry.path().string());
}
