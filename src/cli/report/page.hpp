#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/gp/gp_files.hpp"
#include "cli/gp/gp_prior.hpp"
#include "cli/quality/test_quality.hpp"
#include "cli/report/pictures.hpp"

namespace widelimit::cli {

/// What a report says about a run as a whole.
struct ReportHead {
  std::string command;             ///< As a shell reads it.
  std::string data;                ///< Description of the data and what was done to them.
  std::vector<std::string> notes;  ///< About the data.
  nlohmann::ordered_json shapes;   ///< Of the sets, by their names.
  std::string amplitude;           ///< Where the amplitudes come from.
};

/// What a report knows of the test inputs.
struct ReportTest {
  const std::optional<Matrix<double>>& targets;
  const GpFaces& faces;
};

/// The result that a report begins with: never the best on the test data, but the one that was chosen without them,
/// among the regularisers of all networks and kernels; or the first, where nothing was chosen.
struct ReportLead {
  std::string name;
  std::optional<double> choice;  ///< By the criterion, larger is better.
  std::optional<gp::Criterion> criterion;
  gp::PredictionScores scores;  ///< On the test data.
  int results;                  ///< Among which it was chosen.
  std::optional<QualityLine>
      simplest;  ///< Of the methods beside it, that which looks at no input; not of models.
  std::string
      better;  ///< Whether one of these methods is better: a sentence without its full stop, or nothing.
};

/// report.html: one file that says what was run and how good it is, for people. It needs no network and no other file.
/// Networks are added one after the other; html() is the page with those that there are.
class ReportPage {
 public:
  ReportPage(ReportHead head, const ReportTest& test) : head_{std::move(head)}, test_{test} {}

  /// `label`: the network as the user wrote it. Without `prior` there is no picture of it.
  void add(const std::string& label, const PredictionFacts& info, const GpResult& result,
           const std::optional<GpPrior>& prior);

  [[nodiscard]] std::string html() const;

 private:
  void lead_by(const std::string& name, const GpPrediction& prediction, std::string better);
  void add_rows(const std::string& label, const PredictionFacts& info, const GpResult& result);

  ReportHead head_;
  ReportTest test_;
  std::string rows_;      ///< Of the table of kernels.
  std::string sections_;  ///< One a network.
  std::string examples_;  ///< A test input of every class.
  std::vector<AccuracyBar> bars_;
  std::optional<ReportLead> lead_;
};

}  // namespace widelimit::cli
