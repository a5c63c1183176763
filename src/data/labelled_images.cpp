#include "widelimit/data/labelled_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::data {
namespace {

using numerics::RandomStream;
using Indices = std::vector<std::size_t>;

// Streams of a user's seed that belong to random splits; their numbers begin with "split" in ASCII. There is one for
// each class, one for the order of each part and one for its quotas, 2^20 of each kind.
constexpr std::uint64_t split_streams = 0x73706c6974ull << 24;
constexpr std::uint64_t class_streams = split_streams;
constexpr std::uint64_t order_streams = split_streams + (1ull << 20);
constexpr std::uint64_t quota_streams = split_streams + (2ull << 20);

// std::shuffle leaves its algorithm to the implementation; this one gives equal orders everywhere.
void shuffle(Indices& items, RandomStream stream) {
  for (std::size_t left = items.size(); left > 1; --left)
    std::swap(items[left - 1], items[stream.below(left)]);
}

Indices iota(std::size_t count) {
  Indices items(count);
  std::iota(items.begin(), items.end(), std::size_t{0});
  return items;
}

void check_labels(std::span<const int> labels, std::size_t classes) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] < 0 || static_cast<std::size_t>(labels[i]) >= classes) {
      throw ArgumentError(
          fmt::format("split: label of item {} must lie in [0, {}), got {}", i, classes, labels[i]));
    }
  }
}

/// An order of which every piece has the shares of the classes: the items of a class, in random order, stand as far
/// apart as they can, each class from a random place on.
Indices order_of_shares(std::span<const int> labels, std::size_t classes, std::uint64_t seed) {
  std::vector<Indices> by_class(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) by_class[static_cast<std::size_t>(labels[i])].push_back(i);
  std::vector<double> places(labels.size());
  for (std::size_t c = 0; c < classes; ++c) {
    RandomStream stream(seed, class_streams + c);
    shuffle(by_class[c], stream);
    // A class of one item stands in the middle, where those who split into test and training have the training.
    const double first = by_class[c].size() == 1 ? 0.5 : RandomStream(seed, quota_streams + c).uniform();
    for (std::size_t k = 0; k < by_class[c].size(); ++k)
      places[by_class[c][k]] = (static_cast<double>(k) + first) / static_cast<double>(by_class[c].size());
  }
  Indices order = iota(labels.size());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return places[i]; });
  return order;
}

/// Parts are pieces of one order, so that none depends on those after it.
std::vector<Indices> pieces_of(const Indices& order, std::span<const std::size_t> counts) {
  const std::size_t items = order.size();
  std::vector<Indices> parts;
  std::size_t begin = 0;
  for (const std::size_t count : counts) {
    if (count > items - begin) {
      throw ArgumentError(fmt::format("split: part {} asks for {} items, but of {} in all only {} are left",
                                      parts.size(), count, items, items - begin));
    }
    const auto first = order.begin() + static_cast<std::ptrdiff_t>(begin);
    parts.emplace_back(first, first + static_cast<std::ptrdiff_t>(count));
    begin += count;
  }
  return parts;
}

// The number of items of each class in a part: as equal as `count` allows. Which classes get one more is drawn.
Indices class_quotas(std::size_t count, std::size_t classes, RandomStream stream) {
  Indices quotas(classes, count / classes);
  Indices order = iota(classes);
  shuffle(order, stream);
  for (std::size_t i = 0; i < count % classes; ++i) ++quotas[order[i]];
  return quotas;
}

std::vector<Indices> split_equally(std::span<const int> labels, std::size_t classes,
                                   std::span<const std::size_t> counts, std::uint64_t seed) {
  std::vector<Indices> by_class(classes);
  for (std::size_t i = 0; i < labels.size(); ++i) by_class[static_cast<std::size_t>(labels[i])].push_back(i);
  // Parts take one piece after another of each class's own random order.
  for (std::size_t c = 0; c < classes; ++c) shuffle(by_class[c], RandomStream(seed, class_streams + c));

  std::vector<Indices> parts;
  Indices taken(classes, 0);
  for (std::size_t p = 0; p < counts.size(); ++p) {
    Indices part;
    const Indices quotas = class_quotas(counts[p], classes, RandomStream(seed, quota_streams + p));
    for (std::size_t c = 0; c < classes; ++c) {
      const std::size_t left = by_class[c].size() - taken[c];
      if (quotas[c] > left) {
        throw ArgumentError(fmt::format(
            "balanced split: part {} with {} items asks for {} of class {}, but of its {} only {} are left",
            p, counts[p], quotas[c], c, by_class[c].size(), left));
      }
      const auto first = by_class[c].begin() + static_cast<std::ptrdiff_t>(taken[c]);
      part.insert(part.end(), first, first + static_cast<std::ptrdiff_t>(quotas[c]));
      taken[c] += quotas[c];
    }
    // Up to here the part is ordered by class.
    shuffle(part, RandomStream(seed, order_streams + p));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

std::vector<Indices> split_indices(std::span<const int> labels, std::size_t classes,
                                   std::span<const std::size_t> counts, ClassBalance balance,
                                   std::uint64_t seed) {
  if (classes == 0) throw ArgumentError("split: the number of classes must be positive, got 0");
  check_labels(labels, classes);
  if (balance == ClassBalance::equal) return split_equally(labels, classes, counts, seed);
  if (balance == ClassBalance::as_in_all) {
    auto parts = pieces_of(order_of_shares(labels, classes, seed), counts);
    for (std::size_t p = 0; p < parts.size(); ++p) shuffle(parts[p], RandomStream(seed, order_streams + p));
    return parts;
  }
  Indices order = iota(labels.size());
  shuffle(order, RandomStream(seed, order_streams));
  return pieces_of(order, counts);
}

LabelledImages select(const LabelledImages& data, std::span<const std::size_t> indices) {
  const auto& shape = data.images.shape();
  if (shape[0] != data.size()) {
    throw ArgumentError(fmt::format("select: there are {} images but {} labels", shape[0], data.size()));
  }
  if (!data.names.empty() && data.names.size() != data.size())
    throw ArgumentError(
        fmt::format("select: there are {} images but {} names", data.size(), data.names.size()));
  LabelledImages chosen;
  chosen.classes = data.classes;
  chosen.class_names = data.class_names;
  chosen.labels.reserve(indices.size());
  chosen.images.resize({indices.size(), shape[1], shape[2], shape[3]});
  const std::size_t pixels = shape[1] * shape[2] * shape[3];
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= data.size()) {
      throw ArgumentError(
          fmt::format("select: index {} of {} images, at position {}", indices[i], data.size(), i));
    }
    std::copy_n(data.images.data() + indices[i] * pixels, pixels, chosen.images.data() + i * pixels);
    chosen.labels.push_back(data.labels[indices[i]]);
    if (!data.names.empty()) chosen.names.push_back(data.names[indices[i]]);
  }
  return chosen;
}

std::vector<LabelledImages> random_split(const LabelledImages& data, std::span<const std::size_t> counts,
                                         ClassBalance balance, std::uint64_t seed) {
  std::vector<LabelledImages> parts;
  for (const Indices& part : split_indices(data.labels, data.classes, counts, balance, seed)) {
    parts.push_back(select(data, part));
  }
  return parts;
}

LabelledImages random_subset(const LabelledImages& data, std::size_t count, std::uint64_t seed) {
  return random_split(data, std::span(&count, 1), ClassBalance::as_drawn, seed).front();
}

LabelledImages balanced_subset(const LabelledImages& data, std::size_t count, std::uint64_t seed) {
  return random_split(data, std::span(&count, 1), ClassBalance::equal, seed).front();
}

}  // namespace widelimit::data
