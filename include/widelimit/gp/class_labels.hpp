#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "widelimit/index.hpp"
#include "widelimit/matrix.hpp"

namespace widelimit::gp {

/// The classes of a classification: the labels that occur in its training data, each with a name. Labels may be any
/// integers or texts; integers that do not occur between them are not classes.
class ClassLabels {
 public:
  /// The different labels, integers in ascending order, texts in that of their bytes; texts that are all integers are
  /// ordered as integers. ArgumentError, preceded by `where`, unless there are 2 to 10,000 of them.
  [[nodiscard]] static ClassLabels of(std::span<const std::int64_t> labels, const char* where);
  [[nodiscard]] static ClassLabels of(std::span<const std::string> labels, const char* where);

  /// Integers with the names of classes. `names` are those of the labels 0, 1, ..., of which some may not occur, or of
  /// the different labels in ascending order. ArgumentError if neither fits.
  [[nodiscard]] static ClassLabels named(std::span<const std::int64_t> labels,
                                         const std::vector<std::string>& names, const char* where);

  /// At least two.
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }

  /// The place of a label among the classes; -1 for one that does not occur in the training data.
  [[nodiscard]] int index_of(const std::string& label) const;
  [[nodiscard]] int index_of(std::int64_t label) const;

  /// Regression targets of labels, see class_scores(). ArgumentError, preceded by
  /// `where`, for a label that is not one of these.
  [[nodiscard]] Matrix<double> targets(std::span<const std::int64_t> labels, const char* where) const;
  [[nodiscard]] Matrix<double> targets(std::span<const std::string> labels, const char* where) const;

 private:
  ClassLabels(std::vector<std::string> labels, const char* where);

  std::map<std::string, int> places_;  ///< Of labels as texts.
  std::vector<std::string> names_;
};

}  // namespace widelimit::gp
