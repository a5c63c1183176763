#include "widelimit/data/word_vectors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "widelimit/error.hpp"

namespace widelimit::data {

WordVectors::WordVectors(std::size_t dimension) : dimension_{dimension} {
  if (dimension == 0) throw ArgumentError("word vectors: the dimension must be positive, got 0");
}

bool WordVectors::add(std::string_view word, std::span<const float> vector) {
  if (vector.size() != dimension_) {
    throw ArgumentError(fmt::format("word vectors: '{}' must have {} numbers as the others, got {}", word,
                                    dimension_, vector.size()));
  }
  if (!std::all_of(vector.begin(), vector.end(), [](float value) { return std::isfinite(value); }))
    throw ArgumentError(fmt::format("word vectors: the numbers of '{}' must be finite", word));
  if (!indices_.try_emplace(std::string(word), words_.size()).second) return false;
  words_.emplace_back(word);
  values_.insert(values_.end(), vector.begin(), vector.end());
  return true;
}

std::optional<std::size_t> WordVectors::find(std::string_view word) const {
  const auto found = indices_.find(word);
  if (found == indices_.end()) return std::nullopt;
  return found->second;
}

WordVectors WordVectors::leading(std::size_t count) const {
  if (count < 1 || count > dimension_) {
    throw ArgumentError(fmt::format("word vectors: the number of leading dimensions must be 1 to {}, got {}",
                                    dimension_, count));
  }
  WordVectors result(count);
  for (std::size_t i = 0; i < size(); ++i) result.add(words_[i], (*this)[i].first(count));
  return result;
}

}  // namespace widelimit::data
