// Folders of strangers that commands write into: no link in them is followed, of no file that run.json lists.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/program.hpp"

using nlohmann::json;
using widelimit::testing::file_text;
using widelimit::testing::ProgramResult;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace fs = std::filesystem;

namespace {

const std::string images = "'" WIDELIMIT_SOURCE_DIR "/data/images/x.npy'";
const std::string sample =
    " --data sample --train 20 --validation 10 --test 10 --size 4 --kernel nngp --threads 1";

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

/// What strangers want to be overwritten: a file, and a folder that is to stay empty.
class Victim {
 public:
  Victim() {
    fs::create_directory(empty());
    write(file(), "precious");
  }
  [[nodiscard]] fs::path file() const { return folder_ / "precious"; }
  [[nodiscard]] fs::path empty() const { return folder_ / "empty"; }
  [[nodiscard]] fs::path out() const { return folder_ / "out"; }
  [[nodiscard]] fs::path operator/(const std::string& name) const { return folder_ / name; }
  void check_untouched() const {
    CHECK(file_text(file()) == "precious");
    CHECK(fs::is_empty(empty()));
  }

 private:
  TemporaryFolder folder_;
};

/// A command that writes a folder of results, whose arguments end before it.
struct FolderCommand {
  std::string name;
  std::string arguments;
};

/// `made` has a model, a store and a configuration for those that read them.
std::vector<FolderCommand> folder_commands(const TemporaryFolder& made) {
  write(made / "sde.json", R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 8})");
  REQUIRE(run_program("fit --network fcn" + sample + " --model '" + (made / "model").string() + "'").code ==
          0);
  REQUIRE(run_program("gram fcn --x " + images + " --store '" + (made / "store").string() + "'").code == 0);
  const std::string sde = " '" + (made / "sde.json").string() + "' --no-pictures --out ";
  return {{"gram", "gram fcn --variances --x " + images + " --out "},
          {"gram --pairs", "gram fcn --pairs 0,1 --x " + images + " --out "},
          {"gp", "gp --network fcn --no-pictures" + sample + " --out "},
          {"gp of two", "gp --network fcn --network conv-gap:depth=1 --no-pictures" + sample + " --out "},
          {"predict", "predict --x " + images + " --model '" + (made / "model").string() + "' --out "},
          {"store export", "store export '" + (made / "store").string() + "' --npy "},
          {"sde simulate", "sde simulate" + sde}};
}

ProgramResult run_into(const FolderCommand& command, const fs::path& out, const std::string& more = "") {
  return run_program(command.arguments + "'" + out.string() + "' --quiet" + more);
}

/// The files that run.json lists, and itself.
std::vector<std::string> files_of(const fs::path& out) {
  auto names = json::parse(file_text(out / "run.json")).at("files").get<std::vector<std::string>>();
  names.emplace_back("run.json");
  return names;
}

}  // namespace

TEST_CASE("hostile folders: no command that writes a folder follows a link in the place of a file") {
  const TemporaryFolder made;
  for (const FolderCommand& command : folder_commands(made)) {
    CAPTURE(command.name);
    const Victim victim;
    const auto first = run_into(command, victim.out());
    CAPTURE(first.errors);
    REQUIRE(first.code == 0);
    for (const std::string& name : files_of(victim.out())) {
      CAPTURE(name);
      for (const fs::path& target : {victim.file(), victim.empty(), victim.empty() / "new"}) {
        const fs::path place = victim.out() / name;
        fs::rename(place, victim / "kept");
        fs::create_symlink(target, place);
        const auto refused = run_into(command, victim.out()),
                   forced = run_into(command, victim.out(), " --force");
        CHECK(refused.code == 1);
        // Without run.json all files are others', of which three are named.
        CHECK((name == "run.json" || refused.errors.find("a link") != std::string::npos));
        CHECK(forced.code == 1);
        CHECK(forced.errors.find(place.string() + ": is a link") != std::string::npos);
        victim.check_untouched();
        fs::remove(place);
        fs::rename(victim / "kept", place);
      }
    }
    // A second name of a file elsewhere: the name gets another file.
    for (const std::string& name : files_of(victim.out())) {
      if (name == "run.json") continue;
      fs::remove(victim.out() / name);
      fs::create_hard_link(victim.file(), victim.out() / name);
    }
    CHECK(run_into(command, victim.out()).code == 0);
    victim.check_untouched();
  }
}

TEST_CASE("hostile folders: no folder of a network is a link, whatever run.json lists") {
  const Victim victim;
  const FolderCommand gp{"gp",
                         "gp --network conv-gap:depth=1 --network fcn --no-pictures" + sample + " --out "};
  for (const json& listed :
       {json{"conv-gap"}, json{"conv-gap/nngp.npy"}, json{"conv-gap/", "conv-gap/run.json"}})
    for (const char* more : {"", " --force"}) {
      CAPTURE(listed.dump());
      fs::remove_all(victim.out());
      fs::create_directory(victim.out());
      write(victim.out() / "run.json", json{{"widelimit", "0.2.0"}, {"files", listed}}.dump());
      fs::create_directory_symlink(victim.empty(), victim.out() / "conv-gap");
      const auto refused = run_into(gp, victim.out(), more);
      CHECK(refused.code == 1);
      CHECK(refused.errors.find("conv-gap") != std::string::npos);
      CHECK(refused.errors.find("a link") != std::string::npos);
      victim.check_untouched();
      CHECK(fs::is_symlink(victim.out() / "conv-gap"));
    }
}

TEST_CASE("hostile folders: an output folder may be a link itself") {
  const Victim victim;
  fs::create_directory(victim / "real");
  fs::create_directory_symlink(victim / "real", victim.out());
  CHECK(run_into({"", "gram fcn --x " + images + " --out "}, victim.out()).code == 0);
  CHECK(fs::exists(victim / "real/nngp.npy"));
}

TEST_CASE(
    "hostile folders: a model or kept Gram matrix replaces no folder with links or folders of others in it") {
  const Victim victim;
  const std::string fit =
      "fit --network fcn" + sample + " --quiet --model '" + (victim / "model").string() + "'";
  REQUIRE(run_program(fit).code == 0);
  const auto refused = [&](const std::string& command) {
    const auto result = run_program(command);
    CAPTURE(result.errors);
    CHECK(result.code == 1);
    CHECK(result.errors.find("which is no part of a") != std::string::npos);
    victim.check_untouched();
  };
  auto document = json::parse(file_text(victim / "model/model.json"));
  const std::string name = document.at("files").begin().key();
  fs::remove(victim / "model" / name);
  for (const fs::path& target : {victim.file(), victim.empty()}) {
    fs::create_symlink(target, victim / "model" / name);
    refused(fit);
    fs::remove(victim / "model" / name);
  }
  fs::create_directory(victim / "model" / name);
  write(victim / "model" / name / "mine", "mine");
  refused(fit);
  CHECK(file_text(victim / "model" / name / "mine") == "mine");

  const std::string gp =
      "gp --network fcn --regulariser 0.1" + sample + " --quiet --gram '" + (victim / "grams").string() + "'";
  REQUIRE(run_program(gp).code == 0);
  for (const auto& entry : fs::directory_iterator(victim / "grams")) {
    const fs::path place = entry.path();
    fs::remove_all(place);
    fs::create_directory_symlink(victim.empty(), place);
    CHECK(run_program(gp).code == 1);
    victim.check_untouched();
    fs::remove(place);
    break;
  }
}

TEST_CASE("hostile folders: nothing is written through a link in a store") {
  const Victim victim;
  const fs::path store = victim / "store";
  const std::string gram = "gram fcn --x " + images + " --quiet --store '" + store.string() + "'";
  REQUIRE(run_program(gram).code == 0);
  for (const std::string name : {"nngp/c/0/0", "nngp/c/0", "nngp/c", "nngp", "ntk/c/0/0", "ntk",
                                 "nngp/records", "nngp/claims", "nngp/zarr.json", "zarr.json"})
    for (const fs::path& target : {victim.file(), victim.empty(), victim.empty() / "new"}) {
      CAPTURE(name);
      CAPTURE(target.string());
      fs::remove_all(store);
      REQUIRE(run_program(gram).code == 0);
      // Something is to be computed in any case.
      fs::remove(store / "ntk/c/0/0");
      fs::remove_all(store / name);
      fs::create_symlink(target, store / name);
      const auto result = run_program(gram);
      CHECK(result.code == 1);
      victim.check_untouched();
    }
  // A second name of a file elsewhere.
  for (const std::string name : {"ntk/c/0/0", "nngp/claims", "ntk/zarr.json"}) {
    CAPTURE(name);
    fs::remove_all(store);
    REQUIRE(run_program(gram).code == 0);
    fs::remove(store / "nngp/c/0/0");
    fs::remove(store / name);
    fs::create_hard_link(victim.file(), store / name);
    const auto result = run_program(gram);
    if (name == "nngp/claims") CHECK(result.errors.find("has other names (hard links)") != std::string::npos);
    victim.check_untouched();
  }
}

TEST_CASE("hostile folders: the stores of gp are no links within their folder") {
  const Victim victim;
  const auto gp = [&](const std::string& networks) {
    return run_program("gp " + networks + sample + " --regulariser 0.1 --quiet --store '" +
                       (victim / "stores").string() + "'");
  };
  const std::string one = "--network fcn", two = "--network fcn --network conv-gap:depth=1";
  for (const std::string& networks : {one, two}) {
    fs::remove_all(victim / "stores");
    REQUIRE(gp(networks).code == 0);
    for (const auto& entry : fs::directory_iterator(victim / "stores")) {
      const fs::path place = entry.path();
      CAPTURE(place.string());
      fs::rename(place, victim / "kept");
      fs::create_directory_symlink(victim.empty(), place);
      const auto refused = gp(networks);
      CHECK(refused.code == 1);
      CHECK(refused.errors.find(place.string() + ": is a link") != std::string::npos);
      victim.check_untouched();
      fs::remove(place);
      fs::rename(victim / "kept", place);
    }
  }
}

TEST_CASE("hostile folders: rerun opens only regular files, and waits for nothing that run.json names") {
  const TemporaryFolder folder;
  const fs::path out = folder / "f";
  const auto rerun_with = [&](const json& arguments, const json& files = json::array()) {
    fs::create_directories(out);
    write(
        out / "run.json",
        json{{"widelimit", "0.2.0"}, {"arguments", arguments}, {"directory", out.string()}, {"files", files}}
            .dump());
    return widelimit::testing::run_program_under("timeout 20", "rerun '" + out.string() + "' --quiet");
  };
  const std::string x = WIDELIMIT_SOURCE_DIR "/data/images/x.npy";
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  fs::create_symlink(folder / "pipe", folder / "link");
  fs::create_symlink(folder / "nowhere", folder / "dangling");
  write(folder / "sde.json", R"({"model": "mlp", "horizon": 0.1, "tokens": 2, "paths": 8})");
  for (const std::string& odd :
       {(folder / "pipe").string(), (folder / "link").string(), folder.string(),
        (folder / "dangling").string(), std::string("/dev/zero"), std::string("/dev/tty"),
        std::string("/dev/stdin"), std::string("/dev/random")}) {
    const std::string place = (out / "o").string();
    for (const json& arguments :
         {json{"gram", odd, "--x", x, "--out", place}, json{"gram", "fcn", "--x", odd, "--out", place},
          json{"gram", "fcn", "--x", x, "--lengths", odd, "--out", place},
          json{"gram", "fcn", "--graphs", odd, "--out", place},
          json{"gp", "--network", odd, "--data", "sample", "--out", place},
          json{"gp", "--network", "fcn", "--data", "csv", "--path", odd, "--target", "y", "--out", place},
          json{"gp", "--network", "fcn", "--data", "mnist", "--path", odd, "--out", place},
          json{"gp", "--network", "fcn", "--data", "imdb", "--path", odd, "--vectors", odd, "--out", place},
          json{"predict", "--model", odd, "--x", x, "--out", place},
          json{"sde", "simulate", odd, "--out", place}, json{"heads", "flow", odd}, json{"check", odd},
          json{"explain", odd, "--input", "4,4,3"}, json{"networks", odd}, json{"propagation", "fit", odd},
          json{"propagation", "network", odd}, json{"propagation", "measure", odd},
          json{"store", "info", odd}}) {
      CAPTURE(arguments.dump());
      const auto result = rerun_with(arguments);
      CAPTURE(result.errors);
      CHECK(result.code != 0);
      CHECK(result.code != 124);
      CHECK(result.errors.find("filesystem error") == std::string::npos);
    }
  }
  // What it lists is compared without waiting, too.
  REQUIRE(mkfifo((out / "pipe").c_str(), 0600) == 0);
  CHECK(rerun_with({"networks"}, {"pipe", "../pipe", "/dev/zero"}).code == 0);
  const auto zero = rerun_with({"gram", std::string("fcn\0.json", 9), "--x", x, "--out", "o"});
  CHECK(zero.code == 1);
  CHECK(zero.errors.find("expected arguments without characters of code 0") != std::string::npos);
}
