#include "widelimit/data/imdb.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>

#include "encoded.hpp"
#include "temporary_folder.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::ArgumentError;
using widelimit::DataError;
namespace fs = std::filesystem;

namespace {

/// A folder in the layout of aclImdb; the text of review 7 of train/pos is "train pos 7".
struct Corpus : TemporaryFolder {
  explicit Corpus(std::initializer_list<const char*> splits = {"train", "test"}, int reviews = 10) {
    for (const std::string split : splits)
      for (const std::string label : {"pos", "neg"}) {
        fs::create_directories(path() / split / label);
        for (int id = 0; id < reviews; ++id)
          write(split + "/" + label + "/" + std::to_string(id) + (label == "pos" ? "_9.txt" : "_2.txt"),
                split + " " + label + " " + std::to_string(id));
      }
  }

  [[nodiscard]] std::string string(const std::string& name) const { return (path() / name).string(); }
};

std::set<std::string> first_words(const LabelledTexts& texts) {
  std::set<std::string> words;
  for (const std::string& text : texts.texts) words.insert(text.substr(0, text.find(' ')));
  return words;
}

void check_balanced(const LabelledTexts& texts, std::size_t size) {
  CHECK(texts.size() == size);
  CHECK(texts.classes == 2);
  REQUIRE(texts.labels.size() == size);
  REQUIRE(texts.names.size() == size);
  CHECK(static_cast<std::size_t>(std::count(texts.labels.begin(), texts.labels.end(), 1)) == size / 2);
  for (std::size_t i = 0; i < size; ++i) {
    const bool positive = texts.texts[i].find(" pos ") != std::string::npos;
    CHECK(texts.labels[i] == (positive ? 1 : 0));
    CHECK(texts.names[i].find(positive ? "/pos/" : "/neg/") != std::string::npos);
  }
}

}  // namespace

TEST_CASE("imdb: reviews are listed with label and rating, by number and not by name") {
  const Corpus corpus({"train"}, 12);
  corpus.write("train/pos/.DS_Store", "x");
  corpus.write("train/urls_pos.txt", "x");
  corpus.write("train/pos/3_10.txt", "the same ID with another rating");
  const auto files = list_reviews(corpus.path() / "train");
  REQUIRE(files.size() == 25);
  CHECK(files[0].label == 0);
  CHECK(files[0].rating == 2);
  CHECK(files[2].path.filename() == "2_2.txt");
  CHECK(files[11].path.filename() == "11_2.txt");
  CHECK(files[12].label == 1);
  CHECK(files[15].path.filename() == "3_9.txt");
  CHECK(files[16].path.filename() == "3_10.txt");
  CHECK(files[16].rating == 10);
  const auto texts = read_reviews(files);
  CHECK(texts.texts[11] == "train neg 11");
  CHECK(texts.labels[24] == 1);
}

TEST_CASE("imdb: without a validation folder training and validation reviews are disjoint parts of train") {
  const Corpus corpus;
  const auto sets =
      read_imdb(corpus.path(), {.train = 12, .validation = 8, .test = 6}, ClassBalance::equal, 3);
  check_balanced(sets.train, 12);
  check_balanced(sets.validation, 8);
  check_balanced(sets.test, 6);
  CHECK(first_words(sets.validation) == std::set<std::string>{"train"});
  CHECK(first_words(sets.test) == std::set<std::string>{"test"});
  std::set<std::string> all(sets.train.texts.begin(), sets.train.texts.end());
  all.insert(sets.validation.texts.begin(), sets.validation.texts.end());
  CHECK(all.size() == 20);
}

TEST_CASE("imdb: a validation folder is the validation set, and train is whole") {
  const Corpus corpus({"train", "val", "test"});
  const auto sets =
      read_imdb(corpus.path(), {.train = 20, .validation = 8, .test = 6}, ClassBalance::equal, 3);
  check_balanced(sets.train, 20);
  check_balanced(sets.validation, 8);
  CHECK(first_words(sets.train) == std::set<std::string>{"train"});
  CHECK(first_words(sets.validation) == std::set<std::string>{"val"});
}

TEST_CASE("imdb: seeds choose the reviews") {
  const Corpus corpus;
  const auto read = [&](std::size_t validation, std::uint64_t seed) {
    return read_imdb(corpus.path(), {.train = 6, .validation = validation, .test = 6}, ClassBalance::equal,
                     seed);
  };
  CHECK(read(4, 1).train.texts == read(0, 1).train.texts);
  CHECK(read(0, 1).validation.size() == 0);
  CHECK(read(4, 1).train.texts != read(4, 2).train.texts);
  CHECK(read(4, 1).test.texts != read(4, 2).test.texts);
}

TEST_CASE("imdb: too few reviews name the folder") {
  const Corpus corpus;
  CHECK_THROWS_WITH_AS(
      read_imdb(corpus.path(), {.train = 12, .validation = 10, .test = 2}, ClassBalance::equal, 0),
      (corpus.string("train") +
       ": balanced split: part 1 with 10 items asks for 5 of class 0, but of its 10 only 4 are left")
          .c_str(),
      ArgumentError);
  CHECK_THROWS_WITH_AS(
      read_imdb(corpus.path(), {.train = 2, .validation = 2, .test = 21}, ClassBalance::as_drawn, 0),
      (corpus.string("test") + ": split: part 0 asks for 21 items, but of 20 in all only 20 are left")
          .c_str(),
      ArgumentError);
}

TEST_CASE("imdb: folders and files that are not as they should be") {
  const auto fails = [](const Corpus& corpus, const std::string& message) {
    CHECK_THROWS_WITH_AS(
        read_imdb(corpus.path(), {.train = 4, .validation = 4, .test = 4}, ClassBalance::equal, 0),
        message.c_str(), DataError);
  };
  const Corpus no_test({"train"}), no_class, empty_class, name, rating, bytes;
  fails(no_test, no_test.string("test") + ": expected a folder with pos and neg, found no such folder");
  fs::remove_all(no_class.path() / "train/pos");
  fails(no_class,
        no_class.string("train/pos") + ": expected a folder of reviews ID_RATING.txt, found no such folder");
  fs::remove_all(empty_class.path() / "test/neg");
  fs::create_directory(empty_class.path() / "test/neg");
  fails(empty_class, empty_class.string("test/neg") + ": expected reviews ID_RATING.txt, found none");
  const std::string wrong =
      ": expected the name of a review, ID_RATING.txt with a rating from 0 to 10; "
      "take other files away";
  name.write("train/pos/readme.txt", "x");
  fails(name, name.string("train/pos/readme.txt") + wrong);
  rating.write("train/neg/5_11.txt", "x");
  fails(rating, rating.string("train/neg/5_11.txt") + wrong);
  for (const char* wrong_name :
       {"5_.txt", "_5.txt", "5_5", "5_5.text", "-5_5.txt", "5_5_5.txt", "5_-1.txt"}) {
    CAPTURE(wrong_name);
    const Corpus other;
    other.write(std::string("train/neg/") + wrong_name, "x");
    fails(other, other.string(std::string("train/neg/") + wrong_name) + wrong);
  }
  CHECK_THROWS_WITH_AS(
      read_imdb("no/such/folder", {.train = 1, .validation = 0, .test = 1}, ClassBalance::equal, 0),
      "no/such/folder: expected a folder with train and test, found no such folder", DataError);
}

TEST_CASE("imdb: bytes that are not UTF-8 are named by file and offset; empty reviews are empty") {
  const Corpus corpus({"train"}, 1);
  corpus.write("train/pos/0_9.txt", "caf\xE9");
  CHECK_THROWS_WITH_AS(
      read_reviews(list_reviews(corpus.path() / "train")),
      (corpus.string("train/pos/0_9.txt") + ": offset 3: expected UTF-8, found byte 0xE9").c_str(),
      DataError);
  corpus.write("train/pos/0_9.txt", "");
  CHECK(read_reviews(list_reviews(corpus.path() / "train")).texts[1].empty());
  corpus.write("train/pos/0_9.txt", "café");
  CHECK(read_reviews(list_reviews(corpus.path() / "train")).texts[1] == "café");
}

TEST_CASE("imdb: marks, UTF-16 and gzip are read, and what is no text is named") {
  const Corpus corpus({"train"}, 1);
  const auto text = [&](const std::string& bytes) {
    corpus.write("train/pos/0_9.txt", bytes);
    return read_reviews(list_reviews(corpus.path() / "train")).texts[1];
  };
  CHECK(text("\xEF\xBB\xBF"
             "caf\u00e9 noir") == "caf\u00e9 noir");
  CHECK(text(utf16_bytes(u"\ufeffcaf\u00e9 noir", true)) == "caf\u00e9 noir");
  CHECK(text(packed("\xEF\xBB\xBF"
                    "caf\u00e9 noir")) == "caf\u00e9 noir");
  CHECK_THROWS_WITH_AS(
      text("PK\x03\x04 word/_rels/"),
      (corpus.string("train/pos/0_9.txt") + ": expected text, found an Excel workbook or another Office "
                                            "file; save the sheet as CSV UTF-8 (in Excel: Save As)")
          .c_str(),
      DataError);
  std::filesystem::remove(corpus.path() / "train/pos/0_9.txt");
  corpus.write("train/pos/0_9.txt.gz", packed("packed"));
  CHECK(read_reviews(list_reviews(corpus.path() / "train")).texts[1] == "packed");
}
