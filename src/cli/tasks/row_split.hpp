#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace widelimit::cli {

/// How many rows of a single set go where.
struct SplitChoice {
  std::optional<std::size_t> train;       ///< Absent: what the others leave.
  std::optional<std::size_t> validation;  ///< Absent: a fifth where they are read, else none.
  std::optional<std::size_t> test;        ///< The same.
  std::uint64_t seed = 0;
  /// Whether anything is chosen on validation rows; what nothing reads is trained on.
  bool reads_validation = true;
  /// Whether each part has its share of each class; absent: of classes yes.
  std::optional<bool> stratified = {};

  [[nodiscard]] bool is_given() const { return train || validation || test || stratified; }
};

/// Numbers of training, validation and test rows: disjoint, drawn at random, each in random order. Throws DataError,
/// with `name` in front, if there are too few rows, none is left for training or testing, or numbers are to be
/// stratified. `classes`: the class of every row, from 0; empty where targets are numbers.
[[nodiscard]] std::array<std::vector<std::size_t>, 3> split_rows(std::size_t rows, const SplitChoice& choice,
                                                                 const std::string& name,
                                                                 const std::vector<int>& classes);

}  // namespace widelimit::cli
