#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/gp_task.hpp"

namespace widelimit::cli {

/// "FILE#ROW", rows counted from 0.
[[nodiscard]] std::vector<std::string> names_of_rows(const std::filesystem::path& file, std::size_t count);

/// Classes by their numbers, two for a single output; none for numbers.
[[nodiscard]] std::vector<std::string> numbered_classes(TargetKind kind, Index outputs);

/// Reads targets from .npy files in the form that the training targets have: integers are labels [n], which become
/// one-hot targets with as many classes as the training labels have; others are targets [n, M] or [n]. Real numbers
/// that could be labels, one an input and all whole, are an error unless `kind` says what they are; it overrules the
/// rest as well.
/// All throw DataError that names the file.
class TargetReader {
 public:
  TargetReader(std::filesystem::path train_file, std::size_t inputs, std::optional<TargetKind> kind);

  [[nodiscard]] Matrix<double> read(const std::filesystem::path& file, std::size_t inputs) const;

  /// What the training targets are. Real ones count as classes where they take two values and each row has one larger
  /// one (two signs, for a single output).
  [[nodiscard]] TargetKind kind_of(const Matrix<double>& train) const;

 private:
  [[nodiscard]] bool are_labels(std::size_t inputs);

  std::filesystem::path train_file_;
  std::optional<TargetKind> kind_;
  bool integers_ = false;  ///< Of type, in the training file.
  bool labels_ = false;
  Index outputs_ = 0;
};

}  // namespace widelimit::cli
