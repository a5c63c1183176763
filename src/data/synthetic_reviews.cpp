#include "widelimit/data/synthetic_reviews.hpp"

#include <fmt/format.h>

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::data {
namespace {

using numerics::RandomStream;
using Words = std::span<const std::string_view>;

constexpr std::string_view praise[] = {"good",   "great",  "fine",  "lovely",   "charming", "clever",
                                       "moving", "superb", "funny", "gripping", "fresh",    "honest"};
constexpr std::string_view blame[] = {"bad",  "awful",   "dull", "boring", "clumsy", "silly",
                                      "weak", "tedious", "flat", "stale",  "poor",   "hollow"};
constexpr std::string_view negations[] = {"not", "never", "hardly"};
constexpr std::string_view degrees[] = {"very", "really", "so", "quite"};
constexpr std::string_view nouns[] = {"film",   "plot", "acting", "music",    "script", "story",
                                      "ending", "cast", "camera", "dialogue", "pace",   "humour"};
constexpr std::string_view neutral[] = {"long", "big", "loud", "short", "new", "quiet", "late", "foreign"};
constexpr std::string_view days[] = {"monday", "friday", "sunday", "holiday"};
constexpr std::string_view others[] = {"the",    "was", "is", "it", "i",    "found", "we", "watched", "and",
                                       "to",     "me",  "on", "a",  "with", "my",    "in", "theatre", "at",
                                       "seemed", "saw", "of", "by", "all",  "what",  "one"};
constexpr std::string_view names[] = {"Anna", "Mr. Fox", "Zoë", "O'Hara"};

constexpr Words kinds[] = {praise, blame, negations, degrees, nouns, neutral, days, others};

// Streams of a user's seed that this generator owns: one for each review and one for the labels of each two reviews.
constexpr std::uint64_t review_streams = 0x7265766965ull << 24;
constexpr std::uint64_t review_label_streams = 0x7265766966ull << 24;
constexpr std::uint64_t vector_seed = 1, dimension = 16;
// The share of opinions that agree with the class of the review, and the share that is expressed by negation.
constexpr double agreement = 0.8, negation_rate = 0.4;

bool chance(RandomStream& random, double probability) { return random.uniform() < probability; }

std::string pick(RandomStream& random, Words words) { return std::string(words[random.below(words.size())]); }

std::string capitalised(std::string sentence) {
  if (sentence[0] >= 'a' && sentence[0] <= 'z') sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return sentence;
}

/// An opinion, positive if `kind`: "very good", or "not very dull" for the same.
std::string opinion(RandomStream& random, bool kind) {
  const bool negated = chance(random, negation_rate);
  const std::string adjective = pick(random, kind != negated ? Words(praise) : Words(blame));
  const std::string degree = chance(random, 0.4) ? pick(random, degrees) + " " : "";
  return (negated ? pick(random, negations) + " " : "") + degree + adjective;
}

std::string opinion_sentence(RandomStream& random, bool kind) {
  const std::string noun = pick(random, nouns), said = opinion(random, kind);
  switch (random.below(4)) {
    case 0:
      return fmt::format("the {} was {}.", noun, said);
    case 1:
      return fmt::format("I found the {} {}!", noun, said);
    case 2:
      return fmt::format("the {} is, to me, {}.", noun, said);
    default:
      return fmt::format("{}: {}.", noun, said);
  }
}

std::string neutral_sentence(RandomStream& random) {
  switch (random.below(4)) {
    case 0:
      return fmt::format("we watched it with {} on a {}.", pick(random, names), pick(random, days));
    case 1:
      return fmt::format("it is {} {}.", pick(random, negations), pick(random, neutral));
    case 2:
      return fmt::format("the {} of the {} is {}...", pick(random, nouns), pick(random, nouns),
                         pick(random, neutral));
    default:
      return fmt::format("I saw it \"in a {} theatre\" (by {}).", pick(random, neutral), pick(random, names));
  }
}

std::string review(RandomStream random, bool kind) {
  std::string text;
  // Five to eleven opinions; neutral sentences do not count.
  for (std::uint64_t left = 5 + random.below(7); left > 0;) {
    if (!text.empty()) text += chance(random, 0.2) ? "<br /><br />" : " ";
    if (chance(random, 0.3)) {
      text += capitalised(neutral_sentence(random));
    } else {
      text += capitalised(opinion_sentence(random, chance(random, agreement) == kind));
      --left;
    }
  }
  return text;
}

}  // namespace

LabelledTexts generate_synthetic_reviews(std::size_t count, std::uint64_t seed) {
  LabelledTexts result;
  result.classes = 2;
  result.class_names = {"bad", "kind"};
  for (std::size_t i = 0; i < count; ++i) {
    const bool first_is_kind = RandomStream(seed, review_label_streams + i / 2).below(2) == 1;
    const bool kind = first_is_kind == (i % 2 == 0);
    result.texts.push_back(review(RandomStream(seed, review_streams + i), kind));
    result.names.push_back(fmt::format("review {}", i));
    result.labels.push_back(kind ? 1 : 0);
  }
  return result;
}

WordVectors synthetic_review_vectors() {
  constexpr double spread = 0.5;
  WordVectors vectors(dimension);
  RandomStream random(vector_seed);
  std::vector<float> values(dimension);
  for (const Words words : kinds) {
    std::vector<double> centre(dimension);
    for (double& value : centre) value = random.normal();
    for (const std::string_view word : words) {
      for (std::size_t k = 0; k < dimension; ++k)
        values[k] = static_cast<float>(centre[k] + spread * random.normal());
      vectors.add(word, values);
    }
  }
  return vectors;
}

}  // namespace widelimit::data
