// Real reviews and vectors, where the working copy has the project's data folder beside it.
#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "data/fixtures.hpp"
#include "widelimit/data/imdb.hpp"
#include "widelimit/data/tokenizer.hpp"
#include "widelimit/data/word_sequences.hpp"

using namespace widelimit::data;
using widelimit::data_test::shared_data;
namespace fs = std::filesystem;

namespace {

bool is_missing() {
  if (fs::exists(shared_data / "aclImdb") && fs::exists(shared_data / "vectors")) return false;
  MESSAGE("skipped: there is no shared data folder with aclImdb and vectors beside the source tree");
  return true;
}

}  // namespace

// The checksum is that of the words which Python's text.lower().translate(...).split(' ') finds, one review a
// line.
TEST_CASE("shared reviews: words as Keras finds them, all of them") {
  if (is_missing()) return;
  std::set<std::string> distinct;
  uLong checksum = crc32(0, nullptr, 0);
  for (const char* split : {"train", "val", "test"}) {
    for (const std::string& text : read_reviews(list_reviews(shared_data / "aclImdb" / split)).texts) {
      std::string line;
      for (std::string& word : tokenize(text)) {
        line += (line.empty() ? "" : " ") + word;
        distinct.insert(std::move(word));
      }
      line += '\n';
      checksum = crc32(checksum, reinterpret_cast<const Bytef*>(line.data()), static_cast<uInt>(line.size()));
    }
  }
  CHECK(distinct.size() == 48'475);  // 48,474 of the data's README and "br"
  CHECK(checksum == 509304383);
}

TEST_CASE("shared reviews: sizes of the sets, words with and without a vector") {
  if (is_missing()) return;
  const auto sets = read_imdb(shared_data / "aclImdb", {.train = 3200, .validation = 1600, .test = 1600},
                              ClassBalance::equal, 0);
  const auto vectors = read_word_vectors(shared_data / "vectors" / "imdb.50d.txt").vectors;
  CHECK(vectors.size() == 34'797);
  CHECK(vectors.dimension() == 50);
  const auto train = embed(sets.train, vectors);
  CHECK(train.size() == 3200);
  CHECK(std::count(train.labels.begin(), train.labels.end(), 1) == 1600);
  CHECK(train.statistics.words == 767'365);
  CHECK(train.statistics.unknown_words == 767'365 - 746'972);
  CHECK(train.statistics.truncated_texts == 4);
  CHECK(train.statistics.truncated_words == 1052);
  CHECK(embed(sets.validation, vectors).statistics.truncated_words == 818);
  const auto test = embed(sets.test, vectors);
  CHECK(test.statistics.truncated_texts == 0);
  std::size_t longest = 0;
  for (const auto& sequence : test.inputs) longest = std::max(longest, sequence.shape(0));
  CHECK(longest == 998);
}
