#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/tasks/gp_task.hpp"
#include "widelimit/gp/class_labels.hpp"

namespace widelimit::cli {

/// "FILE#ROW", rows counted from 0.
[[nodiscard]] std::vector<std::string> names_of_rows(const std::filesystem::path& file, std::size_t count);

/// For people: "3 classes" or "2 outputs (numbers)".
[[nodiscard]] std::string targets_text(TargetKind kind, const std::vector<std::string>& class_names,
                                       const Matrix<double>& targets);

/// Reads targets from .npy files in the form that the training targets have. Integers are labels [n]; the classes are
/// those that occur in the training file, whatever their numbers. Others are targets [n, M] or [n]. Real numbers that
/// could be labels, one an input and all whole, are an error unless `kind` says what they are; it overrules the rest as
/// well. Rows of numbers of any type of which one stands out, the same two values in all rows, name classes 0 .. M - 1.
/// Classes have the targets of gp::class_scores() wherever they come from; a single column of two signs is taken as it
/// is. All throw DataError that names the file.
class TargetReader {
 public:
  TargetReader(std::filesystem::path train_file, std::size_t inputs, std::optional<TargetKind> kind);

  [[nodiscard]] Matrix<double> read(const std::filesystem::path& file, std::size_t inputs) const;

  [[nodiscard]] TargetKind kind() const;

  /// Of classes: labels, or numbers of columns; two for a single column. Empty for numbers.
  [[nodiscard]] std::vector<std::string> class_names() const;

 private:
  enum class Form {
    labels,   ///< One a row.
    one_hot,  ///< A column for each class.
    signs,    ///< A single column of two values, one below 0 and one above.
    numbers
  };

  [[nodiscard]] Form form_of(std::size_t inputs) const;
  [[nodiscard]] Matrix<double> one_hot_targets(const std::filesystem::path& file,
                                               const Matrix<double>& rows) const;

  std::filesystem::path train_file_;
  std::optional<TargetKind> kind_;
  bool integers_;  ///< Of type, in the training file.
  Form form_;
  Index columns_ = 1;
  std::optional<gp::ClassLabels> classes_;  ///< Of labels and of one_hot.
};

}  // namespace widelimit::cli
