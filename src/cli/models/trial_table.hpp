#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/output/result_table.hpp"
#include "widelimit/gp/search.hpp"

namespace widelimit::cli {

/// One network that was tried.
struct TrialRow {
  std::vector<double> values;
  double score;        ///< As the criterion says it; NaN: the network could not be used.
  double regulariser;  ///< The best for it; NaN as well.
  double seconds;
  std::string note;  ///< Why there is no score.
};

/// The trials of a search as a CSV file that is replaced after each, so that a stopped search continues from it.
class TrialTable {
 public:
  /// Reads the rows of an earlier search. Throws DataError if the file holds anything but trials of the same search:
  /// its first lines say what was searched.
  TrialTable(std::filesystem::path file, const Origin& origin,
             const std::vector<gp::SearchParameter>& parameters, std::string score_name);

  [[nodiscard]] const std::vector<TrialRow>& rows() const { return rows_; }
  [[nodiscard]] std::vector<gp::Trial> known() const;

  /// Adds a row and replaces the file.
  void add(TrialRow row);

 private:
  void read();

  std::filesystem::path file_;
  std::string heading_;  ///< Comment and names of columns.
  std::size_t values_;
  std::vector<TrialRow> rows_;
};

/// Draws scores against each parameter.
[[nodiscard]] std::string trial_picture_script(const std::vector<TrialRow>& rows, const TrialRow& best,
                                               const std::vector<gp::SearchParameter>& parameters,
                                               const std::string& score_name);

}  // namespace widelimit::cli
