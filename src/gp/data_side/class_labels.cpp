#include "widelimit/gp/class_labels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "widelimit/error.hpp"
#include "widelimit/gp/targets.hpp"

namespace widelimit::gp {
namespace {

// More different labels are most likely numbers to be predicted.
constexpr std::size_t most_classes = 10'000;

std::vector<std::string> as_texts(std::span<const std::int64_t> labels) {
  std::vector<std::string> texts;
  texts.reserve(labels.size());
  for (const std::int64_t label : labels) texts.push_back(fmt::format("{}", label));
  return texts;
}

void require_count(std::size_t count, const std::string& first, const char* where) {
  if (count < 2)
    throw ArgumentError(fmt::format("{}: expected labels of two or more classes, got {}", where,
                                    count == 0 ? "none" : "'" + first + "' only"));
  if (count > most_classes)
    throw ArgumentError(fmt::format(
        "{}: expected at most {} classes, got {} different labels; are these numbers to be predicted?", where,
        most_classes, count));
}

std::optional<std::int64_t> integer_in(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool are_integers(const std::vector<std::string>& texts) {
  return std::ranges::all_of(texts, [](const std::string& text) { return integer_in(text).has_value(); });
}

/// Indices of the labels among the keys.
template <typename Label>
std::vector<int> indices_of(const ClassLabels& classes, std::span<const Label> labels, const char* where) {
  std::vector<int> indices;
  indices.reserve(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    indices.push_back(classes.index_of(labels[i]));
    if (indices.back() < 0)
      throw ArgumentError(fmt::format("{}: label {} (from 0) is '{}', which does not occur in training data",
                                      where, i, labels[i]));
  }
  return indices;
}

}  // namespace

ClassLabels::ClassLabels(std::vector<std::string> labels, const char* where) : names_{std::move(labels)} {
  require_count(names_.size(), names_.empty() ? "" : names_.front(), where);
  for (std::size_t c = 0; c < names_.size(); ++c) places_[names_[c]] = static_cast<int>(c);
}

ClassLabels ClassLabels::of(std::span<const std::int64_t> labels, const char* where) {
  const std::set<std::int64_t> different(labels.begin(), labels.end());
  return {as_texts(std::vector<std::int64_t>(different.begin(), different.end())), where};
}

ClassLabels ClassLabels::of(std::span<const std::string> labels, const char* where) {
  // The set sorts labels, so that classes do not depend on the order of the inputs.
  const std::set<std::string> different(labels.begin(), labels.end());
  std::vector<std::string> texts(different.begin(), different.end());
  // Labels that are integers are in the order of their values, in which 10 comes after 9.
  if (are_integers(texts))
    std::ranges::stable_sort(texts, {}, [](const std::string& text) { return *integer_in(text); });
  return {std::move(texts), where};
}

ClassLabels ClassLabels::named(std::span<const std::int64_t> labels, const std::vector<std::string>& names,
                               const char* where) {
  ClassLabels classes = of(labels, where);
  const auto count = static_cast<std::int64_t>(names.size());
  const auto [least, most] = std::ranges::minmax(labels);
  // If all labels are numbers within the list, names belong to these numbers, whether or not all of them occur.
  const bool by_number = least >= 0 && most < count;
  if (!by_number && names.size() != classes.names_.size())
    throw ArgumentError(fmt::format(
        "{}: expected names of the labels {} to {}, or of the {} different ones in ascending order, got {}",
        where, least, most, classes.names_.size(), names.size()));
  for (std::size_t c = 0; c < classes.names_.size(); ++c)
    classes.names_[c] = names[by_number ? static_cast<std::size_t>(*integer_in(classes.names_[c])) : c];
  return classes;
}

int ClassLabels::index_of(const std::string& label) const {
  const auto found = places_.find(label);
  return found == places_.end() ? -1 : found->second;
}

int ClassLabels::index_of(std::int64_t label) const { return index_of(fmt::format("{}", label)); }

Matrix<double> ClassLabels::targets(std::span<const std::int64_t> labels, const char* where) const {
  return class_scores(indices_of(*this, labels, where), static_cast<int>(names_.size()));
}

Matrix<double> ClassLabels::targets(std::span<const std::string> labels, const char* where) const {
  return class_scores(indices_of(*this, labels, where), static_cast<int>(names_.size()));
}

}  // namespace widelimit::gp
