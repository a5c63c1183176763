#include "widelimit/gp/class_labels.hpp"

#include <doctest/doctest.h>

#include "widelimit/error.hpp"
#include "widelimit/gp/targets.hpp"

using namespace widelimit;
using namespace widelimit::gp;

using Labels = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

TEST_CASE("class labels: classes are the labels that occur, in order") {
  const ClassLabels gaps = ClassLabels::of(Labels{8, -3, 8, 1'000'000'000'000}, "test");
  CHECK(gaps.names() == Texts{"-3", "8", "1000000000000"});
  CHECK(gaps.index_of(std::int64_t{8}) == 1);
  CHECK(gaps.index_of(std::int64_t{0}) == -1);
  CHECK(ClassLabels::of(Texts{"b", "a", "b"}, "test").names() == Texts{"a", "b"});
  CHECK(ClassLabels::of(Texts{"10", "9", "-1"}, "test").names() == Texts{"-1", "9", "10"});
}

TEST_CASE("class labels: two classes are one output, more are an output each") {
  const Labels two{3, 8, 3}, three{5, 9, 7};
  CHECK(ClassLabels::of(two, "test").targets(two, "test") == binary_targets(std::vector<int>{0, 1, 0}));
  CHECK(ClassLabels::of(three, "test").targets(three, "test") == class_targets(std::vector<int>{0, 2, 1}, 3));
}

TEST_CASE("class labels: names by number, or in ascending order") {
  CHECK(ClassLabels::named(Labels{0, 2}, {"a", "b", "c"}, "test").names() == Texts{"a", "c"});
  CHECK(ClassLabels::named(Labels{8, 3}, {"three", "eight"}, "test").names() == Texts{"three", "eight"});
  CHECK_THROWS_WITH_AS((void)ClassLabels::named(Labels{8, 3}, {"a", "b", "c"}, "test"),
                       "test: expected names of the labels 3 to 8, or of the 2 different ones in ascending "
                       "order, got 3",
                       ArgumentError);
}

TEST_CASE("class labels: errors") {
  const Labels none, one{4, 4}, known{1, 2}, unknown{1, 5};
  CHECK_THROWS_WITH_AS((void)ClassLabels::of(none, "y"),
                       "y: expected labels of two or more classes, got none", ArgumentError);
  CHECK_THROWS_WITH_AS((void)ClassLabels::of(one, "y"),
                       "y: expected labels of two or more classes, got '4' only", ArgumentError);
  CHECK_THROWS_WITH_AS((void)ClassLabels::of(known, "y").targets(unknown, "y"),
                       "y: label 1 (from 0) is '5', which does not occur in training data", ArgumentError);
  Labels many;
  for (std::int64_t i = 0; i < 10'001; ++i) many.push_back(i);
  CHECK_THROWS_WITH_AS((void)ClassLabels::of(many, "y"), doctest::Contains("at most 10000 classes"),
                       ArgumentError);
}
