#include "widelimit/data/word_sequences.hpp"

#include <doctest/doctest.h>

#include <array>
#include <string>

#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::ArgumentError;
using widelimit::DataError;

namespace {

/// "one" .. "five" as (1, -1) .. (5, -5).
WordVectors numbers() {
  WordVectors vectors(2);
  float value = 0;
  for (const char* word : {"one", "two", "three", "four", "five"}) {
    ++value;
    vectors.add(word, std::array{value, -value});
  }
  return vectors;
}

LabelledTexts texts_of(const std::vector<std::string>& texts) {
  LabelledTexts result;
  result.classes = 2;
  for (const std::string& text : texts) {
    result.names.push_back("text " + std::to_string(result.size()));
    result.labels.push_back(static_cast<int>(result.size() % 2));
    result.texts.push_back(text);
  }
  return result;
}

std::vector<float> first_column(const xt::xarray<float>& sequence) {
  REQUIRE(sequence.dimension() == 2);
  REQUIRE(sequence.shape(1) == 2);
  std::vector<float> column;
  for (std::size_t i = 0; i < sequence.shape(0); ++i) {
    CHECK(sequence(i, 1) == -sequence(i, 0));
    column.push_back(sequence(i, 0));
  }
  return column;
}

}  // namespace

TEST_CASE("word sequences: known words in their order, unknown ones dropped and counted") {
  const auto result = embed(texts_of({"One, two: THREE!", "five six<br />four seven", "two"}), numbers());
  REQUIRE(result.size() == 3);
  CHECK(first_column(result.inputs[0]) == std::vector<float>{1, 2, 3});
  CHECK(first_column(result.inputs[1]) == std::vector<float>{5, 4});
  CHECK(first_column(result.inputs[2]) == std::vector<float>{2});
  CHECK(result.labels == std::vector<int>{0, 1, 0});
  CHECK(result.classes == 2);
  CHECK(result.statistics.texts == 3);
  CHECK(result.statistics.words == 9);
  CHECK(result.statistics.unknown_words == 3);
  CHECK(result.statistics.truncated_texts == 0);
}

TEST_CASE(
    "word sequences: cut to the last words as Keras does, or to the first; unknown words do not count") {
  const auto texts = texts_of({"one six two three", "one two six", "one two three four five"});
  const auto last = embed(texts, numbers(), {.max_length = 2});
  CHECK(first_column(last.inputs[0]) == std::vector<float>{2, 3});
  CHECK(first_column(last.inputs[1]) == std::vector<float>{1, 2});
  CHECK(first_column(last.inputs[2]) == std::vector<float>{4, 5});
  CHECK(last.statistics.truncated_texts == 2);
  CHECK(last.statistics.truncated_words == 4);
  const auto first = embed(texts, numbers(), {.max_length = 2, .truncation = Truncation::keep_first});
  CHECK(first_column(first.inputs[0]) == std::vector<float>{1, 2});
  CHECK(first_column(first.inputs[2]) == std::vector<float>{1, 2});
  CHECK(embed(texts, numbers(), {.max_length = 5}).statistics.truncated_texts == 0);
  CHECK(embed(texts, numbers(), {.max_length = 4}).statistics.truncated_words == 1);
}

TEST_CASE("word sequences: texts without words or without known words are left out, counted and named") {
  const auto result = embed(texts_of({"one", "", "two", "six seven", " ... ", "three"}), numbers());
  REQUIRE(result.size() == 4 - 1);
  CHECK(first_column(result.inputs[2]) == std::vector<float>{3});
  CHECK(result.labels == std::vector<int>{0, 0, 1});
  CHECK(result.names == std::vector<std::string>{"text 0", "text 2", "text 5"});
  CHECK(result.statistics.without_words == std::vector<std::string>{"text 1", "text 4"});
  CHECK(result.statistics.without_known_words == std::vector<std::string>{"text 3"});
  CHECK(to_string(result.statistics) ==
        "6 texts, 5 words, 40.00 % of them without a vector and dropped; 0 texts cut, 0 words; 2 without "
        "words left "
        "out (text 1, text 4); 1 without known words left out (text 3)");
}

TEST_CASE("word sequences: nothing to work with is an error") {
  CHECK_THROWS_WITH_AS(
      embed(texts_of({"six", "seven"}), numbers()),
      "embed: none of 2 texts has a word with a vector (the first is text 0); are the vectors of the "
      "language of the texts, with words in lower case?",
      DataError);
  CHECK(embed({}, numbers()).size() == 0);
  CHECK_THROWS_WITH_AS(embed(texts_of({"one"}), numbers(), {.max_length = 0}),
                       "embed: the maximum length must be positive, got 0", ArgumentError);
  CHECK_THROWS_WITH_AS(embed(texts_of({"one", "two\xFF"}), numbers()),
                       "text 1: text: offset 3: expected UTF-8, found byte 0xFF", DataError);
  auto texts = texts_of({"one", "two"});
  texts.labels.pop_back();
  CHECK_THROWS_WITH_AS(embed(texts, numbers()), "embed: there are 2 texts but 2 names and 1 labels",
                       ArgumentError);
}

TEST_CASE("word sequences: padded form") {
  const auto sequences = embed(texts_of({"one two three", "four"}), numbers()).inputs;
  const auto tight = padded(sequences);
  CHECK(tight.lengths == std::vector<std::int64_t>{3, 1});
  REQUIRE(tight.values.shape() == std::array<std::size_t, 3>{2, 3, 2});
  CHECK(tight.values(0, 2, 0) == 3);
  CHECK(tight.values(1, 0, 1) == -4);
  CHECK(tight.values(1, 1, 0) == 0);
  const auto wide = padded(sequences, 5);
  REQUIRE(wide.values.shape() == std::array<std::size_t, 3>{2, 5, 2});
  CHECK(wide.values(1, 0, 0) == 4);
  CHECK(wide.values(1, 4, 1) == 0);
  CHECK_THROWS_WITH_AS(padded(sequences, 2), "padded: the longest sequence has 3 words, got length 2",
                       ArgumentError);
  CHECK_THROWS_WITH_AS(padded({}), "padded: expected at least one sequence, got none", ArgumentError);
  auto mixed = sequences;
  mixed.push_back(xt::zeros<float>({2, 3}));
  CHECK_THROWS_WITH_AS(padded(mixed), "padded: sequence 2 must be [length, 2] as the first one is",
                       ArgumentError);
}
