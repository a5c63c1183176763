#pragma once

#include <cstddef>
#include <cstdint>

#include "widelimit/data/labelled_texts.hpp"
#include "widelimit/data/word_vectors.hpp"

namespace widelimit::data {

/// Writes short film reviews of two classes (1: good, 0: bad), for examples and tests that need no download.
///
/// A review has five to eleven opinions, each positive or negative: four of five are those of the class. Four
/// of ten opinions are expressed by negation, "not very dull" for praise, so that kind words occur in a bad review
/// nearly as often as in a good one, and only their order relative to the negations tells. Negations without opinion,
/// neutral sentences, names without a vector, capitals, punctuation and tags are mixed in.
///
/// Every two consecutive reviews hold each class once, in random order. Review i depends on (seed, i) only: a
/// longer set begins with the shorter one, and consecutive pieces of one set serve as training and test
/// reviews.
LabelledTexts generate_synthetic_reviews(std::size_t count, std::uint64_t seed);

/// A vector of 16 numbers for each word of these reviews except the names: words of one kind (praise, blame,
/// negations, nouns, ...) lie around one centre. The vectors are always the same.
WordVectors synthetic_review_vectors();

}  // namespace widelimit::data
