#pragma once

#include <cstdint>
#include <string>

#include "check/reference_file.hpp"
#include "json/json_value.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/quadrature.hpp"
#include "widelimit/specialization/read_prior.hpp"

namespace widelimit::specialization {

using check::CaseFields;

/// Recomputed values of a stochastic case: means over independent repetitions, and the standard errors of
/// these means as the repetitions show them.
struct StochasticFields {
  CaseFields values;
  CaseFields standard_errors;
  /// Numbers of repetitions here and in the file, over which the variances are pooled; 1 where a standard
  /// error comes from a large sample and needs no pooling.
  double repetitions = 1;
  double repetitions_in_file = 1;
};

/// What the deterministic and the stochastic reference cases read alike. Field activation.
HeadActivation activation_of(const JsonValue& in);
/// Field prior.
inline Prior prior_of(const JsonValue& in) {
  const JsonValue prior = in.at("prior");
  return read_prior(prior.raw(), prior.path());
}
/// Fields m, r, b, v.
HeadParameters case_parameters(const JsonValue& in);

/// Appends loss, m, S, b and v.
void add_flow_point(CaseFields& out, const FlowPoint& point);

/// DataError for a function name that is not known.
CaseFields recompute(const std::string& function, const JsonValue& inputs);
StochasticFields recompute_stochastic(const std::string& function, const JsonValue& description,
                                      const JsonValue& inputs, std::uint64_t seed);

}  // namespace widelimit::specialization
