#pragma once

#include <optional>
#include <vector>

#include "widelimit/results/experiment.hpp"
#include "widelimit/specialization/configuration.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/hessian.hpp"

/// What the experiments share: runs from several starts, and their tables.
namespace widelimit::specialization {

using results::Column;
using results::Picture;
using results::Results;
using results::Table;

/// Results with the seed of the configuration in their origin.
[[nodiscard]] Results seeded(ConfigReader& fields);

/// The number of the start of a row, which files have where there are several.
[[nodiscard]] Column start_column(Index starts);

/// The table of flows, and the points of one; m is multiplied by `frame`, unless that is empty.
[[nodiscard]] Table flow_table(Index starts, HeadActivation activation, Index heads, Index features);
void add_flow(Table& table, Index start, const std::vector<FlowPoint>& points,
              const Matrix<double>& frame = {});

[[nodiscard]] nlohmann::json number_or_null(const std::optional<double>& number);

/// {field: median, least and greatest, "values": how many have one}; null, a time that was not reached, is later than
/// all.
[[nodiscard]] nlohmann::json starts_spread(const std::vector<nlohmann::json>& results, const char* field);
/// The same of numbers: {median, least, greatest}, null what was not reached.
[[nodiscard]] nlohmann::json times_spread(const std::vector<std::optional<double>>& times);
[[nodiscard]] std::ptrdiff_t count_reached(const std::vector<std::optional<double>>& times);

/// The summary of starts: the fields of the first, the spread of `spread` and, under "starts", all.
[[nodiscard]] nlohmann::json summary_of_starts(const std::vector<nlohmann::json>& starts, const char* spread);

/// Split rate at the unspecialised saddle, where the note gives one: softmax and bayes on flip2, H >= 2.
[[nodiscard]] std::optional<SplitRate> split_rate_at_saddle(ConfigReader& fields, HeadActivation activation,
                                                            const Prior& prior, const RunControl& run);

// The experiments of a configuration.
[[nodiscard]] Results flow_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results prune_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results attention_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results sgd_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results compare_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results resampling_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results phase_transition_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results feature_times_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results digits_experiment(ConfigReader& fields, const results::Control& control);
[[nodiscard]] Results digit_times_experiment(ConfigReader& fields, const results::Control& control);

/// A row of a scan of flows: a point's trajectory gives way to what its summary has.
void tabulate_flow(Results& results);

// Pictures of their tables.
[[nodiscard]] Picture flow_picture(const Results& results);
[[nodiscard]] Picture sgd_picture(const Results& results);
[[nodiscard]] Picture compare_picture(const Results& results);
[[nodiscard]] Picture resampling_picture(const Results& results);
[[nodiscard]] Picture prune_picture(const Results& results);
[[nodiscard]] Picture attention_picture(const Results& results);
[[nodiscard]] Picture keys_picture(const Results& results);
[[nodiscard]] Picture phase_transition_picture(const Results& results);
[[nodiscard]] Picture feature_times_picture(const Results& results);
[[nodiscard]] Picture digit_times_picture(const Results& results);

}  // namespace widelimit::specialization
