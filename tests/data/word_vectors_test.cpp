#include "widelimit/data/word_vectors.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <string>

#include "encoded.hpp"
#include "temporary_folder.hpp"
#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::ArgumentError;
using widelimit::DataError;

namespace {

std::vector<float> vector_of(const WordVectors& vectors, const std::string& word) {
  const auto index = vectors.find(word);
  REQUIRE(index);
  CHECK(vectors.word(*index) == word);
  return {vectors[*index].begin(), vectors[*index].end()};
}

WordVectorFile read_text(const std::string& text, BadLines bad_lines = BadLines::reject) {
  const TemporaryFolder folder;
  return read_word_vectors(folder.write("vectors.txt", text), bad_lines);
}

/// Rejected with the message behind "FILE: "; with BadLines::skip reported with the same reason.
void check_bad(const std::string& text, std::size_t line, const std::string& reason) {
  CAPTURE(text);
  const TemporaryFolder folder;
  const auto file = folder.write("vectors.txt", text);
  const std::string message = file.string() + ": line " + std::to_string(line) + ": " + reason +
                              "; repair the file, or leave such lines out";
  CHECK_THROWS_WITH_AS(read_word_vectors(file), message.c_str(), DataError);
  const auto skipped = read_word_vectors(file, BadLines::skip);
  REQUIRE(skipped.bad_lines.size() == 1);
  CHECK(skipped.bad_lines[0].line == line);
  CHECK(skipped.bad_lines[0].reason == reason);
  CHECK(vector_of(skipped.vectors, "last") == std::vector<float>{7, 8});
}

void check_fails(const std::string& text, BadLines bad_lines, const std::string& message) {
  const TemporaryFolder folder;
  const auto file = folder.write("vectors.txt", text);
  CHECK_THROWS_WITH_AS(read_word_vectors(file, bad_lines), (file.string() + ": " + message).c_str(),
                       DataError);
}

}  // namespace

TEST_CASE("word vectors: a GloVe file, its dimension inferred, words in their order") {
  const auto file = read_text("the 0.5 -1.25 3\ncafé 1e-3 +2 .5\n'tis -0 1E2 7\n");
  CHECK(file.bad_lines.empty());
  CHECK(file.vectors.size() == 3);
  CHECK(file.vectors.dimension() == 3);
  CHECK(file.vectors.word(0) == "the");
  CHECK(vector_of(file.vectors, "the") == std::vector<float>{0.5F, -1.25F, 3});
  CHECK(vector_of(file.vectors, "café") == std::vector<float>{0.001F, 2, 0.5F});
  CHECK(vector_of(file.vectors, "'tis") == std::vector<float>{0, 100, 7});
  CHECK_FALSE(file.vectors.find("The"));
  CHECK_FALSE(file.vectors.find(""));
}

TEST_CASE("word vectors: with and without header, whatever ends the lines") {
  for (const char* text :
       {"a 1 2\nb 3 4\n", "2 2\na 1 2\nb 3 4\n", "2 2\r\na 1 2 \r\nb 3 4 \r\n", "a\t1\t2\nb  3 4",
        "\xEF\xBB\xBF"
        "2 2\na 1 2\nb 3 4"}) {
    CAPTURE(text);
    const auto vectors = read_text(text).vectors;
    CHECK(vectors.size() == 2);
    CHECK(vector_of(vectors, "a") == std::vector<float>{1, 2});
    CHECK(vector_of(vectors, "b") == std::vector<float>{3, 4});
  }
}

TEST_CASE("word vectors: words that are numbers are no header") {
  const auto vectors = read_text("1980 5\n1981 6\n").vectors;  // One dimension: 5 numbers do not follow.
  CHECK(vectors.dimension() == 1);
  CHECK(vector_of(vectors, "1980") == std::vector<float>{5});
  CHECK(read_text("2 1\n1981 6\n1982 7\n").vectors.size() == 2);
  CHECK(vector_of(read_text("1980 5 6\n1981 6 7\n").vectors, "1980") == std::vector<float>{5, 6});
  CHECK(vector_of(read_text("12 34\n").vectors, "12") == std::vector<float>{34});
}

TEST_CASE("word vectors: bad lines are rejected by number, or left out and reported") {
  const std::string last = "last 7 8\n";
  check_bad("a 1 2\nb 3\n" + last, 2, "expected 2 numbers after 'b', found 1");
  check_bad("a 1 2\nb 3 4 5\n" + last, 2, "expected 2 numbers after 'b', found 3");
  check_bad("a 1 2\nb\n" + last, 2, "expected 2 numbers after 'b', found 0");
  check_bad("a 1 2\n\n" + last, 2, "expected a word and its numbers, found an empty line");
  check_bad("a 1 2\nc 5 6\nnew york 3 4\n" + last, 3, "expected a finite number as field 2, found 'york'");
  check_bad("a 1 2\nb 3 4x\n" + last, 2, "expected a finite number as field 3, found '4x'");
  check_bad("a 1 2\nb nan 4\n" + last, 2, "expected a finite number as field 2, found 'nan'");
  check_bad("a 1 2\nb 3 -inf\n" + last, 2, "expected a finite number as field 3, found '-inf'");
  check_bad("a 1 2\nb 1e39 4\n" + last, 2, "expected a finite number as field 2, found '1e39'");
  check_bad("a 1 2\nb 3 4\na 5 6\n" + last, 3, "expected a new word, found 'a' of line 1 again");
  check_bad("a 1 2\ncaf\xE9 3 4\n" + last, 2, "expected UTF-8, found byte 0xE9");
  check_bad("a 1 2\nb 3 \xE9\n" + last, 2,
            "expected a finite number as field 3, found 'bytes that are not UTF-8'");
  check_bad("1 2\na 1 2\n" + last, 1, "expected the number of lines that follow, 2, found 1");
}

TEST_CASE("word vectors: of a file that head has cut the message says what its first line should be") {
  check_bad(
      "5 2\na 1 2\n"
      "last 7 8\n",
      1,
      "it promises 5 words, and 2 lines follow: the file was cut, as head or a broken download does; if the "
      "others are not wanted, make it '2 2'");
}

TEST_CASE("word vectors: marks, UTF-16 and gzip are read") {
  const std::u16string text = u"\ufeff2 2\na\u00e9 1 2\nb 3 4\n";
  const std::string plain =
      "\xEF\xBB\xBF"
      "2 2\na\u00e9 1 2\nb 3 4\n";
  for (const std::string& bytes : {plain, utf16_bytes(text, true), utf16_bytes(text, false), packed(plain),
                                   packed(utf16_bytes(text, false)),
                                   std::string("a\u00e9 1 2\n\xEF\xBB\xBF"
                                               "b 3 4\n")}) {
    const auto vectors = read_text(bytes).vectors;
    CHECK(vectors.size() == 2);
    CHECK(vector_of(vectors, "a\u00e9") == std::vector<float>{1, 2});
    CHECK(vector_of(vectors, "b") == std::vector<float>{3, 4});
  }
  // Without a header bytes are no word vectors of word2vec either.
  check_fails(std::string("a \0\0\x80\x3f\n", 7), BadLines::skip,
              "line 1: expected text, found a zero byte; is it binary, or UTF-16 without a byte order mark? "
              "Save it as "
              "UTF-8");
}

TEST_CASE("word vectors: a packed file of nothing but breaks is not listed line by line") {
  check_fails(
      packed("a 1\n" + std::string(3'000'000, '\n')), BadLines::skip,
      "line 1000002: expected a word and its numbers, found an empty line; more than 1000000 lines cannot be "
      "used: are these word vectors?");
}

TEST_CASE("word vectors: lines left out do not hide the ones behind; the first of equal words stays") {
  const auto file = read_text("3 2\na 1 2\nbad 1\nb 3 4\na 5 6\n", BadLines::skip);
  CHECK(file.vectors.size() == 2);
  CHECK(vector_of(file.vectors, "a") == std::vector<float>{1, 2});
  REQUIRE(file.bad_lines.size() == 3);
  CHECK(file.bad_lines[0].line == 3);
  CHECK(file.bad_lines[1].line == 5);
  CHECK(file.bad_lines[1].reason == "expected a new word, found 'a' of line 2 again");
  CHECK(file.bad_lines[2].reason == "expected the number of lines that follow, 4, found 3");
}

TEST_CASE("word vectors: a bad first line is one of many, and says nothing of the others") {
  const std::string rest = "b 3 4\nlast 7 8\n";
  check_bad("a 1\n" + rest, 1, "expected 2 numbers after 'a', found 1");
  check_bad("a 1 2 3\n" + rest, 1, "expected 2 numbers after 'a', found 3");
  check_bad("a\n" + rest, 1, "expected 2 numbers after 'a', found 0");
  check_bad("\n" + rest, 1, "expected a word and its numbers, found an empty line");
  check_bad("2 3\n" + rest, 1, "expected the dimension of most lines that follow, 2, found 3");
  check_bad("3 2\na 1\n" + rest, 2, "expected 2 numbers after 'a', found 1");
  check_bad("3 2\na\n" + rest, 2, "expected 2 numbers after 'a', found 0");
}

TEST_CASE("word vectors: numbers too small for a float are 0") {
  CHECK(vector_of(read_text("a 1e-60 -1e-46\n").vectors, "a") == std::vector<float>{0, 0});
}

TEST_CASE("word vectors: files without vectors") {
  for (const BadLines policy : {BadLines::reject, BadLines::skip}) {
    check_fails("", policy, "line 1: expected a word and its numbers, found none");
    check_fails("word\nother\n", policy, "line 1: expected a word and its numbers, found none");
    check_fails(std::string((1 << 24) + 1000, 'x'), policy,
                "line 1: expected text, found 16778216 bytes without a newline");
  }
  check_fails("a one two\n", BadLines::skip, "no line is usable");
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(read_word_vectors(folder.path() / "none.txt"),
                       ((folder.path() / "none.txt").string() + ": expected a file, found none").c_str(),
                       DataError);
}

TEST_CASE("word vectors: lines across the blocks in which files are read") {
  std::string text;
  for (int i = 0; i < 60'000; ++i)
    text += "word" + std::to_string(i) + " " + std::to_string(i) + ".5 -1.5 0.25\n";
  REQUIRE(text.size() > (std::size_t{1} << 20) + 500'000);
  const auto vectors = read_text(text).vectors;
  REQUIRE(vectors.size() == 60'000);
  for (std::size_t i = 0; i < 60'000; ++i) {
    if (vectors[i][0] == static_cast<float>(i) + 0.5F && vectors.word(i) == "word" + std::to_string(i))
      continue;
    FAIL("word ", i, " is ", vectors.word(i), " ", vectors[i][0]);
  }
}

TEST_CASE("word vectors: made by hand") {
  WordVectors vectors(2);
  CHECK(vectors.add("a", std::array{1.0F, 2.0F}));
  CHECK_FALSE(vectors.add("a", std::array{3.0F, 4.0F}));
  CHECK(vector_of(vectors, "a") == std::vector<float>{1, 2});
  CHECK_THROWS_WITH_AS(vectors.add("b", std::array{1.0F}),
                       "word vectors: 'b' must have 2 numbers as the others, got 1", ArgumentError);
  CHECK_THROWS_WITH_AS(vectors.add("b", std::array{1.0F, std::numeric_limits<float>::infinity()}),
                       "word vectors: the numbers of 'b' must be finite", ArgumentError);
  CHECK(vectors.size() == 1);
  CHECK_THROWS_WITH_AS(WordVectors(0), "word vectors: the dimension must be positive, got 0", ArgumentError);
}

TEST_CASE("word vectors: leading dimensions") {
  const auto vectors = read_text("a 1 2 3\nb 4 5 6\n").vectors;
  const WordVectors weak = vectors.leading(2);
  CHECK(weak.dimension() == 2);
  CHECK(vector_of(weak, "a") == std::vector<float>{1, 2});
  CHECK(vector_of(weak, "b") == std::vector<float>{4, 5});
  CHECK(vector_of(vectors.leading(3), "b") == std::vector<float>{4, 5, 6});
  CHECK_THROWS_WITH_AS(static_cast<void>(vectors.leading(4)),
                       "word vectors: the number of leading dimensions must be 1 to 3, got 4", ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(vectors.leading(0)), ArgumentError);
}

namespace {

/// A word and its numbers as word2vec's binary files have them.
std::string binary_word(const std::string& word, const std::vector<float>& numbers) {
  std::string bytes = word + " ";
  return bytes.append(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float));
}

}  // namespace

TEST_CASE("word vectors: binary files of word2vec, with and without ends of lines") {
  const std::vector<float> first = {0.5F, -1.25F, 3}, second = {0, 1e-3F, 2}, last = {4, 5, 6};
  for (const char* end : {"", "\n"}) {
    const auto file = read_text("3 3\n" + binary_word("the", first) + end + binary_word("café", second) +
                                end + binary_word("last", last) + end);
    CHECK(file.bad_lines.empty());
    CHECK(file.vectors.size() == 3);
    CHECK(vector_of(file.vectors, "the") == first);
    CHECK(vector_of(file.vectors, "café") == second);
    CHECK(vector_of(file.vectors, "last") == last);
  }
}

TEST_CASE("word vectors: binary files that are cut, too long or damaged") {
  const std::vector<float> numbers = {0.5F, 1}, infinite = {std::numeric_limits<float>::infinity(), 1};
  const std::string whole = "2 2\n" + binary_word("a", numbers) + binary_word("b", numbers);
  check_fails(
      whole.substr(0, whole.size() - 1), BadLines::reject,
      "offset 23: expected 2 numbers of 4 bytes as word 2 of 2, found the end of the file (it is truncated), "
      "or other bytes");
  check_fails("3" + whole.substr(1), BadLines::skip,
              "offset 24: expected a word and a blank as word 3 of 3, found the end of the file (it is "
              "truncated), or "
              "other bytes");
  check_fails("1" + whole.substr(1), BadLines::reject,
              "offset 14: expected the end behind 1 words, as line 1 says, found more bytes");
  const std::string repeated =
      "3 2\n" + binary_word("a", numbers) + binary_word("a", numbers) + binary_word("b", infinite);
  check_fails(repeated, BadLines::reject,
              "word 2: expected a new word, found 'a' again; repair the file, or leave such words out");
  const auto file = read_text(repeated, BadLines::skip);
  CHECK(file.vectors.size() == 1);
  REQUIRE(file.bad_lines.size() == 2);
  CHECK(file.bad_lines[0].line == 3);
  CHECK(file.bad_lines[1].reason == "expected finite numbers of 'b'");
}
