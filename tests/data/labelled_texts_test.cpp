#include "widelimit/data/labelled_texts.hpp"

#include <doctest/doctest.h>

#include "widelimit/data/synthetic_reviews.hpp"

using namespace widelimit::data;

TEST_CASE("labelled texts: as many as texts, with a name, a label and a class name each") {
  CHECK(LabelledTexts{}.size() == 0);
  for (const std::size_t count : {1U, 2U, 7U}) {
    const LabelledTexts reviews = generate_synthetic_reviews(count, 3);
    CHECK(reviews.size() == count);
    CHECK(reviews.names.size() == count);
    REQUIRE(reviews.labels.size() == count);
    CHECK(reviews.classes == 2);
    CHECK(reviews.class_names.size() == reviews.classes);
    for (const int label : reviews.labels) CHECK((label == 0 || label == 1));
  }
}
