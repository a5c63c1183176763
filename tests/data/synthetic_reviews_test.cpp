#include "widelimit/data/synthetic_reviews.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "widelimit/data/tokenizer.hpp"

using namespace widelimit::data;

namespace {

const std::set<std::string> praise{"good",   "great",  "fine",  "lovely",   "charming", "clever",
                                   "moving", "superb", "funny", "gripping", "fresh",    "honest"};
const std::set<std::string> blame{"bad",  "awful",   "dull", "boring", "clumsy", "silly",
                                  "weak", "tedious", "flat", "stale",  "poor",   "hollow"};
const std::set<std::string> negations{"not", "never", "hardly"};

/// Kind words less unkind ones; `order` turns round those after a negation (a word between or not).
int verdict(const std::string& text, bool order) {
  const auto words = tokenize(text);
  int sum = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const int sign = praise.contains(words[i]) ? 1 : blame.contains(words[i]) ? -1 : 0;
    const bool negated =
        (i > 0 && negations.contains(words[i - 1])) || (i > 1 && negations.contains(words[i - 2]));
    sum += order && negated ? -sign : sign;
  }
  return sum;
}

double accuracy(const LabelledTexts& texts, bool order) {
  double right = 0;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const int sum = verdict(texts.texts[i], order);
    right += sum == 0 ? 0.5 : (sum > 0) == (texts.labels[i] == 1) ? 1.0 : 0.0;
  }
  return right / static_cast<double>(texts.size());
}

}  // namespace

TEST_CASE("synthetic reviews: equal seeds give equal reviews, a longer set begins with the shorter one") {
  const auto reviews = generate_synthetic_reviews(60, 3);
  CHECK(reviews.size() == 60);
  CHECK(reviews.classes == 2);
  CHECK(reviews.names[7] == "review 7");
  const auto shorter = generate_synthetic_reviews(41, 3);
  CHECK(std::equal(shorter.texts.begin(), shorter.texts.end(), reviews.texts.begin()));
  CHECK(std::equal(shorter.labels.begin(), shorter.labels.end(), reviews.labels.begin()));
  CHECK(generate_synthetic_reviews(41, 4).texts != shorter.texts);
  CHECK(generate_synthetic_reviews(41, 4).labels != shorter.labels);
  CHECK(std::set<std::string>(reviews.texts.begin(), reviews.texts.end()).size() == 60);
  CHECK(generate_synthetic_reviews(0, 3).size() == 0);
}

TEST_CASE("synthetic reviews: two consecutive ones hold each class once, in random order") {
  const auto labels = generate_synthetic_reviews(400, 1).labels;
  int kind_first = 0;
  for (std::size_t i = 0; i < labels.size(); i += 2) {
    CHECK(labels[i] + labels[i + 1] == 1);
    kind_first += labels[i];
  }
  CHECK(std::abs(kind_first - 100) < 5 * std::sqrt(50.0));
}

TEST_CASE("synthetic reviews: every word but the names has a vector") {
  const auto vectors = synthetic_review_vectors();
  CHECK(vectors.dimension() == 16);
  std::set<std::string> unknown, known;
  for (const std::string& text : generate_synthetic_reviews(500, 2).texts)
    for (const std::string& word : tokenize(text)) (vectors.find(word) ? known : unknown).insert(word);
  CHECK(unknown == std::set<std::string>{"anna", "br", "fox", "mr", "o'hara", "zoë"});
  for (const auto* words : {&praise, &blame, &negations})
    CHECK(std::includes(known.begin(), known.end(), words->begin(), words->end()));
}

TEST_CASE("synthetic reviews: counting words tells little, negations turned round tell the class") {
  const auto reviews = generate_synthetic_reviews(4000, 5);
  const double bag = accuracy(reviews, false), ordered = accuracy(reviews, true);
  MESSAGE("right by counting words: ", bag, ", with negations: ", ordered);
  // An opinion is kind in words with probability 0.8 0.6 + 0.2 0.4 = 0.56 in a kind review, kind in meaning
  // with 0.8. Votes of 5 to 11 opinions, each number as likely as any other, ties counting half: 63.1 %
  // and 96.2 %.
  CHECK(bag == doctest::Approx(0.6328).epsilon(0.05).scale(0));
  CHECK(ordered == doctest::Approx(0.9667).epsilon(0.012).scale(0));
}
