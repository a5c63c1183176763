#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/index.hpp"

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

/// The parts of split_rows(), changed so that validation data say something of other rows: validation rows that are
/// equal to a training row are trained on. `equal`: the same number for rows of equal inputs.
void train_on_equal_rows(std::array<std::vector<std::size_t>, 3>& parts, const std::vector<Index>& equal);

/// The same so that each of `groups`, a number for each row, is in the part of its first row. DataError, with `name` in
/// front, where none are left for training or testing.
void keep_groups_together(std::array<std::vector<std::size_t>, 3>& parts, const std::vector<Index>& groups,
                          const std::string& name);

}  // namespace widelimit::cli
