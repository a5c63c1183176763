#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "widelimit/fields/config_reader.hpp"
#include "widelimit/specialization/first_times.hpp"
#include "widelimit/specialization/resampled_flow.hpp"
#include "widelimit/specialization/sgd_runs.hpp"
#include "widelimit/specialization/trained_heads.hpp"
#include "widelimit/specialization/trained_starts.hpp"

/// What the experiments of `widelimit heads`, and the Python functions that do the same, can be told: one table of
/// fields an experiment, and the reading of JSON by it. Errors name the field.
namespace widelimit::specialization {

/// All fields of an experiment, by the name of its command. ArgumentError for an unknown one.
[[nodiscard]] const ConfigFields& experiment_fields(std::string_view experiment);

/// Single fields.
[[nodiscard]] Prior read_prior(ConfigReader& fields);
[[nodiscard]] HeadActivation read_activation(ConfigReader& fields);
[[nodiscard]] PruneNormaliser read_normaliser(ConfigReader& fields);
[[nodiscard]] std::uint64_t read_seed(ConfigReader& fields);

/// Each reads its fields and leaves the rest unread; call finish(unused_field) on the reader afterwards. The prior is
/// that of read_prior(), or the caller's own. Runs have no threads and no progress yet.
[[nodiscard]] TrainingSetup read_training(ConfigReader& fields, const Prior& prior);
/// What fresh_samples() of a setup needs; others are left as they are.
[[nodiscard]] TrainingSetup read_fresh_samples(ConfigReader& fields, const Prior& prior);
[[nodiscard]] FlowPairSetup read_flow_pair(ConfigReader& fields, const Prior& prior);
[[nodiscard]] SgdSetup read_sgd(ConfigReader& fields, const Prior& prior);
/// An SGD with the flow beside it: SGD is recorded at steps of both alone.
struct Comparison {
  SgdSetup sgd;
  BesideOptions flow;
};
[[nodiscard]] Comparison read_comparison(ConfigReader& fields, const Prior& prior);

/// "start": {"m", "r" or "S", optional "b", "v"}; nothing where heads start at random.
[[nodiscard]] std::optional<HeadParameters> read_start(ConfigReader& fields, const TrainingSetup& setup);

/// The experiments on times at which heads specialise: flows, or SGD where it has a batch.
struct TimedSetup {
  TimedFlows runs;             ///< Without activation and dimension.
  std::optional<Index> batch;  ///< Of SGD; 0: the dimension.

  /// The times of run `seed` from heads of length eta.
  [[nodiscard]] FirstTimes split_times(double eta, std::uint64_t seed) const;
};
[[nodiscard]] TimedSetup read_timed_runs(ConfigReader& fields, const Prior& prior);
/// The setup in one dimension. Errors name "dimension" or "dimensions".
void set_dimension(const ConfigReader& fields, Index dimension, TimedSetup& setup);

/// SGD on images of so many pixels, up to the time "tau".
[[nodiscard]] SgdOptions read_image_sgd(ConfigReader& fields, Index pixels);

}  // namespace widelimit::specialization
