#include "widelimit/data/labelled_images.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <set>

#include "widelimit/error.hpp"

using namespace widelimit::data;
using widelimit::ArgumentError;
using Indices = std::vector<std::size_t>;

namespace {

/// Labels 0, 1, ..., classes - 1, 0, 1, ...
std::vector<int> cyclic_labels(std::size_t count, int classes) {
  std::vector<int> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(static_cast<int>(i) % classes);
  return labels;
}

/// Images of 1 x 2 pixels whose values tell their index.
LabelledImages numbered_images(std::size_t count, int classes) {
  LabelledImages data;
  data.classes = static_cast<std::size_t>(classes);
  data.labels = cyclic_labels(count, classes);
  data.images.resize({count, 1, 2, 1});
  for (std::size_t i = 0; i < 2 * count; ++i) data.images.data()[i] = static_cast<float>(i);
  return data;
}

Indices class_counts(const Indices& part, const std::vector<int>& labels, std::size_t classes) {
  Indices counts(classes, 0);
  for (const std::size_t i : part) ++counts[static_cast<std::size_t>(labels[i])];
  return counts;
}

}  // namespace

TEST_CASE("split: parts are disjoint, of the sizes asked for and the same for equal seeds") {
  const auto labels = cyclic_labels(100, 10);
  const Indices counts = {30, 50, 20};
  for (const auto balance : {ClassBalance::as_drawn, ClassBalance::as_in_all, ClassBalance::equal}) {
    const auto parts = split_indices(labels, 10, counts, balance, 5);
    CHECK(parts == split_indices(labels, 10, counts, balance, 5));
    CHECK(parts != split_indices(labels, 10, counts, balance, 6));
    REQUIRE(parts.size() == 3);
    std::set<std::size_t> all;
    for (std::size_t p = 0; p < 3; ++p) {
      CHECK(parts[p].size() == counts[p]);
      CHECK_FALSE(std::is_sorted(parts[p].begin(), parts[p].end()));
      all.insert(parts[p].begin(), parts[p].end());
    }
    CHECK(all.size() == 100);
    CHECK(*all.rbegin() == 99);
  }
}

TEST_CASE("split: a part depends on the parts before it only") {
  const auto labels = cyclic_labels(100, 10);
  for (const auto balance : {ClassBalance::as_drawn, ClassBalance::as_in_all, ClassBalance::equal}) {
    const auto with_validation = split_indices(labels, 10, Indices{37, 40}, balance, 1);
    const auto alone = split_indices(labels, 10, Indices{37}, balance, 1);
    CHECK(with_validation[0] == alone[0]);
  }
}

TEST_CASE("split: equal balance gives equal class counts, one more where the count is no multiple") {
  std::vector<int> labels(500, 0);  // class 0 is common, the others rare
  const auto rare = cyclic_labels(45, 9);
  for (const int label : rare) labels.push_back(1 + label);
  const auto exact = split_indices(labels, 10, Indices{30, 20}, ClassBalance::equal, 3);
  CHECK(class_counts(exact[0], labels, 10) == Indices(10, 3));
  CHECK(class_counts(exact[1], labels, 10) == Indices(10, 2));

  const auto uneven = split_indices(labels, 10, Indices{23}, ClassBalance::equal, 3);
  auto counts = class_counts(uneven[0], labels, 10);
  std::sort(counts.begin(), counts.end());
  CHECK(counts == Indices{2, 2, 2, 2, 2, 2, 2, 3, 3, 3});

  const auto drawn = split_indices(labels, 10, Indices{100}, ClassBalance::as_drawn, 3);
  CHECK(class_counts(drawn[0], labels, 10)[0] > 70);
}

TEST_CASE("split: parts have the shares that classes have, and a class of one is in the middle") {
  std::vector<int> labels(90, 0);
  labels.insert(labels.end(), 20, 1);
  labels.insert(labels.end(), 9, 2);
  labels.push_back(3);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto parts = split_indices(labels, 4, Indices{24, 72, 24}, ClassBalance::as_in_all, seed);
    const std::array<double, 3> sizes{24.0 / 120, 72.0 / 120, 24.0 / 120};
    for (std::size_t p = 0; p < 3; ++p) {
      const Indices counts = class_counts(parts[p], labels, 4);
      for (std::size_t c = 0; c < 3; ++c) {
        const double expected = sizes[p] * std::array{90.0, 20.0, 9.0}[c];
        CHECK(std::abs(static_cast<double>(counts[c]) - expected) <= 2);
      }
      CHECK(counts[3] == (p == 1 ? 1 : 0));
    }
  }
}

TEST_CASE("split: every item is as likely as any other") {
  const auto labels = cyclic_labels(20, 2);
  for (const auto balance : {ClassBalance::as_drawn, ClassBalance::as_in_all, ClassBalance::equal}) {
    std::vector<int> drawn(20, 0), first(20, 0);
    const int draws = 4000;
    for (int seed = 0; seed < draws; ++seed) {
      const auto part = split_indices(labels, 2, Indices{5}, balance, static_cast<std::uint64_t>(seed))[0];
      for (const std::size_t i : part) ++drawn[i];
      ++first[part[0]];
    }
    for (const int count : drawn) CHECK(std::abs(count - draws / 4) < 5 * std::sqrt(draws * 0.25 * 0.75));
    for (const int count : first) CHECK(std::abs(count - draws / 20) < 5 * std::sqrt(draws * 0.05 * 0.95));
  }
}

TEST_CASE("split: too few items say how many are left") {
  const auto labels = cyclic_labels(20, 4);
  CHECK(split_indices(labels, 4, Indices{12, 8}, ClassBalance::as_drawn, 0).size() == 2);
  CHECK_THROWS_WITH_AS(split_indices(labels, 4, Indices{12, 9}, ClassBalance::as_drawn, 0),
                       "split: part 1 asks for 9 items, but of 20 in all only 8 are left", ArgumentError);
  CHECK(split_indices(labels, 4, Indices{12, 8}, ClassBalance::equal, 0).size() == 2);
  CHECK_THROWS_WITH_AS(
      split_indices(labels, 4, Indices{12, 12}, ClassBalance::equal, 0),
      "balanced split: part 1 with 12 items asks for 3 of class 0, but of its 5 only 2 are left",
      ArgumentError);
  CHECK_THROWS_WITH_AS(split_indices(labels, 3, Indices{1}, ClassBalance::equal, 0),
                       "split: label of item 3 must lie in [0, 3), got 3", ArgumentError);
  CHECK_THROWS_WITH_AS(split_indices(std::array{0, -1}, 3, Indices{1}, ClassBalance::equal, 0),
                       "split: label of item 1 must lie in [0, 3), got -1", ArgumentError);
  CHECK_THROWS_WITH_AS(split_indices(labels, 0, Indices{1}, ClassBalance::equal, 0),
                       "split: the number of classes must be positive, got 0", ArgumentError);
}

TEST_CASE("subsets: images keep their labels") {
  const auto data = numbered_images(60, 3);
  const auto check = [&](const LabelledImages& part, std::size_t count) {
    CHECK(part.size() == count);
    CHECK(part.classes == 3);
    REQUIRE(part.images.shape() == std::array<std::size_t, 4>{count, 1, 2, 1});
    for (std::size_t i = 0; i < count; ++i) {
      const auto index = static_cast<std::size_t>(part.images(i, 0, 0, 0)) / 2;
      CHECK(part.images(i, 0, 1, 0) == static_cast<float>(2 * index + 1));
      CHECK(part.labels[i] == data.labels[index]);
    }
  };
  check(random_subset(data, 17, 1), 17);
  check(balanced_subset(data, 30, 1), 30);
  const auto parts = random_split(data, Indices{10, 0, 50}, ClassBalance::as_drawn, 2);
  check(parts[0], 10);
  check(parts[1], 0);
  check(parts[2], 50);
  check(select(data, Indices{5, 5, 0}), 3);
}

TEST_CASE("select: indices beyond the end and mismatched labels are errors") {
  auto data = numbered_images(4, 2);
  CHECK_THROWS_WITH_AS(select(data, Indices{0, 4}), "select: index 4 of 4 images, at position 1",
                       ArgumentError);
  data.labels.pop_back();
  CHECK_THROWS_WITH_AS(select(data, Indices{0}), "select: there are 4 images but 3 labels", ArgumentError);
}
