#pragma once

#include <string_view>
#include <vector>

#include "widelimit/fields/config_reader.hpp"
#include "widelimit/specialization/configuration.hpp"

/// What flows and SGD are told alike.
namespace widelimit::specialization {

/// The words of enumerations.
inline const Choices<HeadActivation> head_activations{{"softmax", HeadActivation::softmax},
                                                      {"softmaxv", HeadActivation::softmaxv},
                                                      {"softmax1", HeadActivation::softmax1},
                                                      {"bayes", HeadActivation::bayes}};
inline const Choices<SampleSymmetry> sample_symmetries{{"plain", SampleSymmetry::plain},
                                                       {"closed", SampleSymmetry::closed}};
inline const Choices<FlowVariant> flow_variants{{"frame", FlowVariant::frame},
                                                {"symmetric", FlowVariant::symmetric}};
inline const Choices<FlowStepper> flow_steppers{{"euler", FlowStepper::euler},
                                                {"runge_kutta4", FlowStepper::runge_kutta4},
                                                {"dormand_prince", FlowStepper::dormand_prince}};
inline const Choices<SgdForm> sgd_forms{{"gram", SgdForm::gram}, {"vector", SgdForm::vector}};
inline const Choices<PruneNormaliser> prune_normalisers{{"kept_heads", PruneNormaliser::kept_heads},
                                                        {"full_model", PruneNormaliser::full_model}};

/// A number of samples of L tokens with F + H numbers each. ArgumentError naming the field where memory is short.
[[nodiscard]] Index read_samples(ConfigReader& fields, const char* field, Index features);

/// Number of steps of a size, which the given field has set, in the time "tau"; `last` where that is not given and its
/// row has no number.
[[nodiscard]] Index read_steps(ConfigReader& fields, std::string_view field, double step,
                               std::optional<double> last = {});
/// Steps to record at even times, about "records" of them.
[[nodiscard]] std::vector<Index> read_records(ConfigReader& fields, Index steps);

/// NetworkError unless this entry of "dimension" or "dimensions" is at least that.
void require_dimension(const ConfigReader& fields, Index dimension, Index least);

}  // namespace widelimit::specialization
