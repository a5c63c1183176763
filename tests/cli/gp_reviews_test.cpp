#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/program.hpp"
#include "widelimit/data/npy.hpp"

using namespace widelimit;
using widelimit::testing::file_text;
using widelimit::testing::lines_of;
using widelimit::testing::run_program;
using widelimit::testing::TemporaryFolder;

namespace {

nlohmann::json results_of(const std::string& arguments, const TemporaryFolder& folder) {
  const auto result = run_program("gp " + arguments + " --no-pictures --out " + folder.string());
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  return nlohmann::json::parse(file_text(folder / "results.json"));
}

/// Sixteen reviews a class and split, "fine" in the good ones, "dull" in the bad ones, and vectors for these
/// words.
struct Corpus : TemporaryFolder {
  explicit Corpus(std::initializer_list<const char*> splits = {"train", "test"}) {
    for (const std::string split : splits)
      for (const std::string label : {"pos", "neg"}) {
        std::filesystem::create_directories(path() / split / label);
        for (int id = 0; id < 16; ++id)
          write_review(split + "/" + label, id, label == "pos" ? "Fine" : "Dull");
      }
    write("vectors.txt", "the 1 0 0\nfilm 0 1 0\nfine 0.5 0 1\ndull 0.5 0 -1\n");
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path() / name, std::ios::binary) << text;
  }
  /// Reviews differ in length and hold the unknown word "zzz".
  void write_review(const std::string& folder, int id, const std::string& word) const {
    std::string text = "zzz <br /> " + word + " film!";
    for (int i = 0; i < id; ++i) text += " the";
    write(folder + "/" + std::to_string(id) + "_5.txt", text);
  }

  [[nodiscard]] std::string arguments(const std::string& more = "--train 16 --validation 8 --test 8") const {
    return "gp --data imdb --path " + string() + " --vectors " + (path() / "vectors.txt").string() + " " +
           more + " ";
  }
};

void check_reviews_fail(const std::string& arguments, const std::string& message) {
  const auto result = run_program(arguments + " --network imdb-gap");
  CAPTURE(result.output);
  CHECK(result.code == 1);
  CHECK(result.errors == "widelimit: " + message + "\n");
}

void check_reviews_usage(const std::string& arguments, const std::string& part) {
  CAPTURE(arguments);
  const auto result = run_program("gp --network imdb-gap " + arguments);
  CHECK(result.code == 2);
  CAPTURE(result.errors);
  CHECK(result.errors.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("gp reviews: words of the class separate the classes; what was dropped is said") {
  const Corpus corpus;
  const auto result = run_program(corpus.arguments() + "--network imdb-gap --seed 1 --criterion accuracy");
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  const auto lines = lines_of(result.output);
  CAPTURE(result.output);
  REQUIRE(lines.size() == 21);
  CHECK(lines[0].find(
            "imdb: 16 training, 8 validation, 8 test reviews of up to 17 words x 3, 2 classes, seed 1, ") ==
        0);
  CHECK(lines[1].find("training: 16 texts, ") == 0);
  CHECK(lines[2].find("validation: 8 texts, ") == 0);
  CHECK(lines[3].find("test: 8 texts, ") == 0);
  for (std::size_t i = 1; i <= 3; ++i)
    CHECK(lines[i].find("without a vector and dropped; 0 texts cut") != std::string::npos);
  CHECK(lines[10].find("100.00 %") != std::string::npos);
  CHECK(lines[11].find("100.00 %") != std::string::npos);
}

TEST_CASE("gp reviews: a validation folder is used where there is one") {
  const Corpus two, three({"train", "val", "test"});
  const std::string all = "--train 32 --validation 8 --test 8";
  CHECK(run_program(two.arguments(all) + "--network imdb-gap").code == 1);
  CHECK(run_program(three.arguments(all) + "--network imdb-gap").code == 0);
}

TEST_CASE("gp reviews: every family runs, reviews of different length in one batch") {
  const Corpus corpus;
  for (const char* network :
       {"imdb-gap:norm=1", "imdb-gap-fcn:depth=2,erf=1", "imdb-cnn-gap:depth=2,filter=3,norm=1",
        "imdb-struct:depth=1,attentions=2,norm=1,dense=1"}) {
    CAPTURE(network);
    const TemporaryFolder folder;
    const auto results = results_of(corpus.arguments().substr(3) + "--network " + network, folder);
    CHECK(data::read_npy_header(folder / "mean_ntk.npy").shape == std::vector<std::size_t>{8, 1});
    for (const auto& kernel : results["results"]) CHECK(kernel["accuracy"].get<double>() > 0.8);
  }
}

TEST_CASE("gp reviews: length, dimensions and lines of the vector file") {
  const Corpus corpus;
  const std::string network = "--network imdb-gap ";
  CHECK(run_program(corpus.arguments() + network + "--max-length 2").output.find("up to 2 words x 3") !=
        std::string::npos);
  CHECK(run_program(corpus.arguments() + network + "--dimensions 2").output.find("words x 2, 2 classes") !=
        std::string::npos);
  check_reviews_fail(corpus.arguments() + "--dimensions 4",
                     "word vectors: the number of leading dimensions must be 1 to 3, got 4");
  corpus.write("vectors.txt", "4 3\nthe 1 0 0\nfine 0.5 0 1\ndull 0.5 0\ndull 0.5 0 -1\n");
  const std::string file = (corpus / "vectors.txt").string();
  check_reviews_fail(
      corpus.arguments(),
      file + ": line 4: expected 3 numbers after 'dull', found 2; repair the file, or leave such lines out");
  const auto skipped = run_program(corpus.arguments() + network + "--skip-bad-lines");
  CHECK(skipped.code == 0);
  CHECK(lines_of(skipped.output)[4] ==
        file + ": 1 lines left out; line 4: expected 3 numbers after 'dull', found 2");
}

TEST_CASE("gp reviews: reviews without known words are left out and named") {
  const Corpus corpus({"train", "val", "test"});
  corpus.write("test/pos/3_5.txt", "zzz zzz");
  corpus.write("test/neg/7_5.txt", "");
  const auto result =
      run_program(corpus.arguments("--train 16 --validation 8 --test 32") + "--network imdb-gap");
  CAPTURE(result.errors);
  REQUIRE(result.code == 0);
  CHECK(lines_of(result.output)[0].find("8 validation, 30 test reviews") != std::string::npos);
  const std::string note = lines_of(result.output)[3];
  CAPTURE(note);
  CHECK(note.find("test: 32 texts, ") == 0);
  CHECK(note.find("; 1 without words left out (" + (corpus / "test/neg/7_5.txt").string() +
                  "); 1 without known words left out (" + (corpus / "test/pos/3_5.txt").string() + ")") !=
        std::string::npos);
}

TEST_CASE("gp reviews: files that are missing or wrong") {
  const Corpus corpus;
  check_reviews_fail("gp --data imdb --path no/such --vectors " + (corpus / "vectors.txt").string(),
                     "no/such: expected a folder with train and test, found no such folder");
  check_reviews_fail(
      "gp --data imdb --train 8 --validation 4 --test 4 --path " + corpus.string() + " --vectors no/such.txt",
      "no/such.txt: expected a file, found none");
  corpus.write("vectors.txt", "other 1 2\n");
  const auto unknown = run_program(corpus.arguments() + "--network imdb-gap");
  CHECK(unknown.code == 1);
  CHECK(unknown.errors.find("embed: none of 16 texts has a word with a vector") != std::string::npos);
  corpus.write("train/pos/0_5.txt", "caf\xE9");
  const auto bytes = run_program(corpus.arguments("--train 32 --regulariser 1 --validation 0 --test 4") +
                                 "--network imdb-gap");
  CHECK(bytes.code == 1);
  CHECK(bytes.errors.find("train/pos/0_5.txt: offset 3: expected UTF-8, found byte 0xE9") !=
        std::string::npos);
}

TEST_CASE("gp reviews: on generated reviews convolutions beat pooled words, seeds choose the reviews") {
  const TemporaryFolder gap, fcn, cnn, other;
  const std::string data = "--data reviews --train 120 --validation 60 --test 100 --kernel nngp ";
  const auto accuracy = [&](const std::string& network, const TemporaryFolder& folder) {
    return results_of(data + "--seed 3 --network " + network, folder)["results"][0]["accuracy"].get<double>();
  };
  // Counting words is right 63 times of 100, reading negations 97 times.
  CHECK(accuracy("imdb-gap", gap) < 0.72);
  CHECK(accuracy("imdb-gap-fcn", fcn) < 0.72);
  CHECK(accuracy("imdb-cnn-gap:filter=3", cnn) > 0.8);
  results_of(data + "--seed 4 --network imdb-gap", other);
  CHECK(data::read_npy<double>(other / "mean_nngp.npy") != data::read_npy<double>(gap / "mean_nngp.npy"));
}

TEST_CASE("gp reviews: wrong usage") {
  check_reviews_usage("--data reviews --path .", "--data reviews has no files");
  check_reviews_usage("--data imdb --vectors v.txt", "--path");
  check_reviews_usage("--data imdb --path .", "--vectors FILE for --data imdb");
  check_reviews_usage("--data reviews --vectors v.txt", "--vectors");
  check_reviews_usage("--data reviews --size 4", "--size: for --data sample, cifar10 and mnist only");
  check_reviews_usage("--data sample --max-length 4", "--max-length");
  check_reviews_usage("--data reviews --max-length 0", "--max-length");
  check_reviews_usage("--data sample --dimensions 2", "--dimensions");
  check_reviews_usage("--data npy --path . --skip-bad-lines", "--skip-bad-lines");
}
