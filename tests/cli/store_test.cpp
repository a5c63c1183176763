// Stores from the command line: computed, gone on with, looked into, verified, exported.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/program.hpp"
#include "support/random_inputs.hpp"
#include "widelimit/data/npy.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

void write_images(const TemporaryFolder& folder, Index count, const char* name = "x.npy") {
  data::write_npy(folder / name, xt::xarray<float>(testing::random_inputs(1, {count, 4, 4, 2})));
}

std::string gram_arguments(const TemporaryFolder& folder, const std::string& more) {
  return "gram conv-gap:depth=1 --x " + (folder / "x.npy").string() + " " + more;
}

testing::ProgramResult gram_store(const TemporaryFolder& folder, const std::string& more = "") {
  return run_program(gram_arguments(folder, "--store " + (folder / "store").string() + " " + more));
}

void check_fails(const testing::ProgramResult& result, const std::string& part, int code = 1) {
  CAPTURE(result.errors);
  CHECK(result.code == code);
  CHECK(result.errors.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("gram --store: parts, then the rest, then nothing; export has the bytes of gram --out") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  const auto first = gram_store(folder, "--tile 4 --part 1/2");
  CHECK(first.code == 0);
  CHECK(first.output.find((folder / "store").string() + ": 3 tiles: 3 computed, 0 found, ") == 0);
  check_fails(run_program("store verify " + (folder / "store").string()),
              "3 tiles are missing, 0 files damaged");
  CHECK(gram_store(folder).output.find("6 tiles: 3 computed, 3 found") != std::string::npos);
  CHECK(gram_store(folder).output.find("6 tiles: 0 computed, 6 found") != std::string::npos);
  CHECK(run_program(gram_arguments(folder, "--out " + (folder / "out").string())).code == 0);
  const auto exported =
      run_program("store export " + (folder / "store").string() + " --npy " + (folder / "npy").string());
  CHECK(exported.code == 0);
  CHECK(exported.output.starts_with((folder / "npy").string() + ": nngp.npy and ntk.npy, "));
  CHECK(testing::lines_of(exported.output).size() == 1);
  const auto again = run_program("store export " + (folder / "store").string() + " --json --npy " +
                                 (folder / "npy").string());
  CHECK(nlohmann::json::parse(again.output).at("files") == nlohmann::json{"nngp.npy", "ntk.npy"});
  for (const char* name : {"nngp.npy", "ntk.npy"})
    CHECK(file_text(folder / "npy" / name) == file_text(folder / "out" / name));
}

TEST_CASE("store info says what a store is of") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  CHECK(gram_store(folder, "--tile 4 --kernel ntk --part 2/2").code == 0);
  const auto info = run_program("store info " + (folder / "store").string());
  CHECK(info.code == 0);
  for (const char* part :
       {"arrays         ntk\n", "matrix         10 x 10, symmetric", "tiles          3 of 6 there",
        "rows           10 inputs, 2 channels, shape [4,4]", "values_sha256", "\"relu\""})
    CHECK(info.output.find(part) != std::string::npos);
}

TEST_CASE("store verify finds damage, and numbers that are not what is computed") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  CHECK(gram_store(folder, "--tile 4").code == 0);
  const std::string store = (folder / "store").string(), x = (folder / "x.npy").string();
  const auto whole = run_program("store verify " + store + " --recompute 100 --x " + x);
  CHECK(whole.code == 0);
  CHECK(whole.output == "6 of 6 tiles whole\n55 pairs, which are all, computed again: the same bits\n");
  const auto chunk = folder / "store/ntk/c/0/1";
  std::string bytes = file_text(chunk);
  bytes[5] = static_cast<char>(bytes[5] ^ 1);
  std::ofstream(chunk, std::ios::binary) << bytes;
  const auto damaged = run_program("store verify " + store);
  check_fails(damaged, "0 tiles are missing, 1 files damaged");
  CHECK(damaged.output == "5 of 6 tiles whole\ndamaged: " + chunk.string() + "\n");
  const auto mended = gram_store(folder);
  CHECK(mended.errors ==
        "widelimit: " + chunk.string() + ": damaged: its checksum or length is wrong; computed again\n");
  CHECK(mended.output.find("1 computed, 5 found, 1 damaged files mended") != std::string::npos);
  CHECK(run_program("store verify " + store).code == 0);
  write_images(folder, 9, "fewer.npy");
  check_fails(run_program("store verify " + store + " --recompute 5 --x " + (folder / "fewer.npy").string()),
              "it has 10 rows, 9 inputs were given");
  check_fails(run_program("store verify " + store + " --recompute 5"), "--recompute needs --x", 2);
}

TEST_CASE(
    "a tile of another store is damage to every command; tiles without records are taken only if asked for") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  const std::string x = (folder / "x.npy").string(), store = (folder / "store").string(),
                    npy = " --npy " + (folder / "npy").string();
  REQUIRE(gram_store(folder, "--tile 4").code == 0);
  REQUIRE(run_program("gram conv-gap:depth=2 --tile 4 --x " + x + " --store " + (folder / "other").string())
              .code == 0);
  const auto chunk = folder / "store/ntk/c/0/1";
  const auto take_foreign = [&] {
    std::filesystem::copy_file(folder / "other/ntk/c/0/1", chunk,
                               std::filesystem::copy_options::overwrite_existing);
  };
  const std::string damage = chunk.string() + ": damaged: the record of its place is of other numbers";
  take_foreign();
  check_fails(run_program("store verify " + store), "0 tiles are missing, 1 files damaged");
  check_fails(run_program("store verify " + store + " --accept-unrecorded"),
              "0 tiles are missing, 1 files damaged");
  check_fails(run_program("store export " + store + npy), damage);
  CHECK(gram_store(folder).errors == "widelimit: " + damage + "; computed again\n");
  CHECK(run_program("store export " + store + npy).code == 0);

  std::filesystem::remove_all(folder / "store/nngp/records");
  check_fails(gram_store(folder), "no record says that its tiles are of this store");
  check_fails(run_program("store export " + store + npy),
              "no record of the store says that it belongs there");
  const auto refused = run_program("store verify " + store);
  check_fails(refused, "0 tiles are missing, 12 files damaged");
  CHECK(refused.output.find("12 files have no record of their place") != std::string::npos);
  CHECK(run_program("store verify " + store + " --accept-unrecorded --recompute 55 --x " + x).code == 0);
  CHECK(run_program("store export " + store + " --accept-unrecorded --force" + npy).code == 0);
  CHECK(gram_store(folder, "--accept-unrecorded").output.find("6 tiles: 0 computed, 6 found") !=
        std::string::npos);
  CHECK(run_program("store verify " + store).output == "6 of 6 tiles whole\n");
}

TEST_CASE("gp --store takes no tile of another store, and those without a record only if asked to") {
  const TemporaryFolder folder;
  const auto gp = [&](const std::string& stores, const std::string& network, const std::string& more = "") {
    return run_program(
        "gp --data sample --train 20 --test 10 --size 4 --regulariser 0.1 --amplitude 1 --network " +
        network + " --store " + (folder / stores).string() + " " + more);
  };
  REQUIRE(gp("stores", "conv-gap:depth=1").code == 0);
  REQUIRE(gp("others", "conv-gap:depth=2").code == 0);
  const auto chunk = folder / "stores/train/ntk/c/0/0";
  std::filesystem::copy_file(folder / "others/train/ntk/c/0/0", chunk,
                             std::filesystem::copy_options::overwrite_existing);
  const auto mended = gp("stores", "conv-gap:depth=1");
  CHECK(mended.errors.find(chunk.string() +
                           ": damaged: the record of its place is of other numbers; computed again") !=
        std::string::npos);
  CHECK(mended.code == 0);
  std::filesystem::remove_all(folder / "stores/train/nngp/records");
  check_fails(gp("stores", "conv-gap:depth=1"), "no record says that its tiles are of this store");
  CHECK(gp("stores", "conv-gap:depth=1", "--accept-unrecorded").code == 0);
  CHECK(gp("stores", "conv-gap:depth=1").code == 0);
}

// PoCL is a device wherever the tests run.
TEST_CASE("stores are computed on the device that was asked for, and continued and compared there") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  const std::string store = (folder / "store").string();
  REQUIRE(gram_store(folder, "--tile 4 --device pocl").code == 0);
  CHECK(run_program("store info " + store).output.find("\ndevice ") != std::string::npos);
  CHECK(run_program(gram_arguments(folder, "--device pocl --out " + (folder / "out").string())).code == 0);
  REQUIRE(run_program("store export " + store + " --npy " + (folder / "npy").string()).code == 0);
  CHECK(file_text(folder / "npy" / "ntk.npy") == file_text(folder / "out" / "ntk.npy"));
  check_fails(gram_store(folder), "arithmetic.device is ");
  CHECK(gram_store(folder, "--device pocl").output.find("6 tiles: 0 computed, 6 found") != std::string::npos);
  const std::string verify = "store verify " + store + " --recompute 55 --x " + (folder / "x.npy").string();
  check_fails(run_program(verify), "arithmetic.device is ");
  CHECK(run_program(verify + " --device pocl").code == 0);

  const std::string gp =
      "gp --data sample --train 20 --test 10 --size 4 --regulariser 0.1 --amplitude 1 --device pocl "
      "--network conv-gap:depth=1 --store " +
      (folder / "stores").string();
  REQUIRE(run_program(gp).code == 0);
  for (const char* name : {"train", "test-train"})
    CHECK(run_program("store info " + (folder / "stores" / name).string()).output.find("\ndevice ") !=
          std::string::npos);
}

TEST_CASE("gp --store: the same table, from stores that are read the second time") {
  const TemporaryFolder folder;
  const std::string gp =
      "gp --data sample --train 60 --validation 20 --test 20 --network fcn --network conv-gap:depth=1 "
      "--criterion accuracy";
  const auto plain = run_program(gp + " --out " + (folder / "plain").string() + " --no-report --no-pictures");
  REQUIRE(plain.code == 0);
  const std::string stored = gp + " --store " + (folder / "stores").string() + " --no-report --no-pictures";
  for (const char* out : {"first", "second"}) {
    CHECK(run_program(stored + " --out " + (folder / out).string()).code == 0);
    for (const char* name : {"fcn/mean_ntk.npy", "fcn/variance_nngp.npy", "conv-gap/mean_nngp.npy"})
      CHECK(file_text(folder / out / name) == file_text(folder / "plain" / name));
  }
  for (const char* store : {"fcn/train", "fcn/validation-train", "conv-gap/test-train"})
    CHECK(run_program("store verify " + (folder / "stores" / store).string()).code == 0);
  check_fails(run_program(stored + " --flip"), "--store", 2);
  check_fails(run_program(stored + " --gram " + (folder / "grams").string()), "--store", 2);
  // Other data: the stores are not theirs.
  check_fails(run_program("gp --data sample --train 50 --validation 20 --test 20 --network fcn --network "
                          "conv-gap:depth=1 --store " +
                          (folder / "stores").string()),
              "the store is another one");
}

TEST_CASE("gp --store: tiles of a side, parts of a store, and the stores of both kernels for one of them") {
  const TemporaryFolder folder;
  const std::string stores = (folder / "stores").string();
  const std::string gp =
      "gp --data sample --train 40 --test 10 --size 4 --network conv-gap:depth=1 --no-report --no-pictures "
      "--force "
      "--regulariser 0.1 --amplitude 1 --store " +
      stores + " --out " + (folder / "out").string();
  const auto half = run_program(gp + " --tile 8 --part 1/2");
  CAPTURE(half.errors);
  REQUIRE(half.code == 0);
  CHECK(half.output.find("\npart 1 of 2 is in the store, ") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder / "out/results.json"));
  const auto info = run_program("store info " + stores + "/train");
  CHECK(info.output.find(" of 15 there (") != std::string::npos);
  CHECK(info.output.find("\ncomputed       by nobody, as far as can be seen; one process did ") !=
        std::string::npos);
  const auto rest = run_program(gp + " --part 2/2");
  CAPTURE(rest.errors);
  REQUIRE(rest.code == 0);  // With what is there now, it goes on to predictions.
  CHECK(std::filesystem::exists(folder / "out/results.json"));
  const std::string both = file_text(folder / "out/mean_nngp.npy");
  const auto one = run_program(gp + " --kernel nngp --other-arithmetic");
  CAPTURE(one.errors);
  REQUIRE(one.code == 0);
  CHECK(file_text(folder / "out/mean_nngp.npy") == both);
  check_fails(run_program("gp --data sample --train 40 --network fcn --part 1/2"), "--part", 2);
}

TEST_CASE("stores in folders that cannot be written to are read, verified and computed from") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  REQUIRE(gram_store(folder, "--tile 4").code == 0);
  const std::string stores = (folder / "stores").string(), x = (folder / "x.npy").string();
  const std::string gp =
      "gp --data sample --train 20 --test 10 --size 4 --network fcn --criterion evidence --kernel nngp "
      "--store " +
      stores;
  const auto before = run_program(gp);
  REQUIRE(before.code == 0);
  const std::string root = folder.string();
  REQUIRE(
      testing::run_script("chmod -R a+rX,a-w " + root + "/store " + root + "/stores && chmod a+rx " + root)
          .code == 0);
  // The superuser may write everywhere.
  const char* const somebody = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups" : "";
  const auto again = testing::run_program_under(somebody, gp);
  CAPTURE(again.errors);
  CHECK(again.code == 0);
  const auto whole =
      testing::run_program_under(somebody, "store verify " + root + "/store --recompute 100 --x " + x);
  CAPTURE(whole.errors);
  CHECK(whole.code == 0);
  CHECK(whole.output == "6 of 6 tiles whole\n55 pairs, which are all, computed again: the same bits\n");
  REQUIRE(testing::run_script("chmod -R u+w " + root).code == 0);
  std::filesystem::remove(folder / "store/ntk/c/0/1");
  REQUIRE(testing::run_script("chmod -R a-w " + root + "/store").code == 0);
  check_fails(testing::run_program_under(somebody, gram_arguments(folder, "--store " + root + "/store")),
              "the store cannot be written to, and 1 of 6 tiles are missing in it");
  REQUIRE(testing::run_script("chmod -R u+w " + root).code == 0);
}

TEST_CASE("more threads than cores, and one core, are taken without a word") {
  const TemporaryFolder folder;
  write_images(folder, 10);
  for (const char* threads : {"0", "1", "5", "64"})
    for (const char* pinned : {"", "taskset -c 0"}) {
      const auto result = testing::run_program_under(
          pinned, gram_arguments(folder, std::string("--force --threads ") + threads + " --out " +
                                             (folder / "out").string()));
      CHECK(result.code == 0);
      CHECK(result.errors == "");
    }
}

TEST_CASE("gram --store: growing, other networks, options that do not fit each other") {
  const TemporaryFolder folder;
  write_images(folder, 6);
  CHECK(gram_store(folder, "--tile 4").code == 0);
  write_images(folder, 11);
  check_fails(gram_store(folder), "it has 6 rows, 11 inputs were given; let it grow (--grow)");
  CHECK(gram_store(folder, "--grow").output.find("6 tiles: 5 computed, 1 found") != std::string::npos);
  CHECK(run_program(gram_arguments(folder, "--out " + (folder / "out").string())).code == 0);
  CHECK(run_program("store export " + (folder / "store").string() + " --npy " + (folder / "npy").string())
            .code == 0);
  CHECK(file_text(folder / "npy/ntk.npy") == file_text(folder / "out/ntk.npy"));
  check_fails(run_program("gram conv-gap:depth=2 --x " + (folder / "x.npy").string() + " --store " +
                          (folder / "store").string()),
              "the store is another one: network.layers[2].layer");
  check_fails(run_program(gram_arguments(folder, "")), "--out, --store", 2);
  check_fails(run_program(gram_arguments(folder, "--out o --store s")), "--out, --store", 2);
  check_fails(run_program(gram_arguments(folder, "--store s --variances")), "--store", 2);
  check_fails(run_program(gram_arguments(folder, "--out o --part 1/2")), "--store", 2);
  for (const char* text : {"2", "2/", "/2", "0/2", "3/2", "-1/2", "1/2x", "a/b"})
    check_fails(gram_store(folder, std::string("--part ") + text),
                std::string("--part: expected K/N with K from 1 to N, got ") + text);
  check_fails(run_program("store info " + folder.string()), "there is no store");
}
