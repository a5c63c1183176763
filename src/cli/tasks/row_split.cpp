#include "cli/tasks/row_split.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "widelimit/data/labelled_images.hpp"
#include "widelimit/error.hpp"

namespace widelimit::cli {

std::array<std::vector<std::size_t>, 3> split_rows(std::size_t rows, const SplitChoice& choice,
                                                   const std::string& name, const std::vector<int>& classes) {
  if (choice.stratified == true && classes.empty())
    throw DataError(
        fmt::format("{}: --stratify yes: the targets are numbers, of which parts have no shares", name));
  if (rows == 0)
    throw DataError(fmt::format("{}: expected rows to train with and to test, found none", name));
  const std::size_t validation = choice.validation.value_or(choice.reads_validation ? rows / 5 : 0),
                    test = choice.test.value_or(rows / 5);
  const std::size_t others = validation + test;
  const std::size_t train = choice.train.value_or(others < rows ? rows - others : 0);
  if (train == 0 || test == 0 || train > rows || others > rows - train)
    throw DataError(fmt::format(
        "{}: {} rows cannot be split into {} training, {} validation and {} test rows; give --train, "
        "--validation and --test",
        name, rows, train, validation, test));
  // Test rows come first, so that they stay the same whatever the sizes of the other sets.
  const std::vector<std::size_t> counts{test, train, validation};
  const bool stratified = choice.stratified.value_or(true) && !classes.empty();
  const std::vector<int> labels = stratified ? classes : std::vector<int>(rows, 0);
  auto parts = data::split_indices(labels, static_cast<std::size_t>(std::ranges::max(labels)) + 1, counts,
                                   stratified ? data::ClassBalance::as_in_all : data::ClassBalance::as_drawn,
                                   choice.seed);
  return {std::move(parts[1]), std::move(parts[2]), std::move(parts[0])};
}

void train_on_equal_rows(std::array<std::vector<std::size_t>, 3>& parts, const std::vector<Index>& equal) {
  auto& [train, validation, test] = parts;
  std::set<Index> seen;
  for (const std::size_t row : train) seen.insert(equal[row]);
  std::vector<std::size_t> others;
  for (const std::size_t row : validation) (seen.contains(equal[row]) ? train : others).push_back(row);
  validation = std::move(others);
}

void keep_groups_together(std::array<std::vector<std::size_t>, 3>& parts, const std::vector<Index>& groups,
                          const std::string& name) {
  // That of the first row is drawn as that of any row is, so that parts have their sizes on average.
  std::map<Index, std::pair<std::size_t, std::size_t>>
      first;  // Of each group its first row, and the part of that.
  for (std::size_t part = 0; part < parts.size(); ++part)
    for (const std::size_t row : parts[part]) {
      const auto [known, is_new] = first.try_emplace(groups[row], row, part);
      if (!is_new && row < known->second.first) known->second = {row, part};
    }
  std::array<std::vector<std::size_t>, 3> together;
  for (const auto& part : parts)
    for (const std::size_t row : part) together[first.at(groups[row]).second].push_back(row);
  if (together[0].empty() || together[2].empty())
    throw DataError(
        fmt::format("{}: --groups: whole groups leave no rows to {}; give --train and --test so that both "
                    "have some, or take finer groups",
                    name, together[0].empty() ? "train with" : "test"));
  parts = std::move(together);
}

}  // namespace widelimit::cli
