#pragma once

#include <map>
#include <string>

#include "check_cases.hpp"
#include "read_prior.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/quadrature.hpp"

/// The deterministic reference cases, one file a subject: how each recomputes its fields from its inputs.
namespace widelimit::specialization {

using CaseTable = std::map<std::string, CaseFields (*)(const JsonValue&)>;

void add_loss_cases(CaseTable& table);
void add_hessian_cases(CaseTable& table);
void add_sgd_cases(CaseTable& table);
void add_trained_heads_cases(CaseTable& table);
void add_bayes_cases(CaseTable& table);

/// Field activation.
HeadActivation activation_of(const JsonValue& in);
/// Fields m, r, b, v.
HeadParameters case_parameters(const JsonValue& in);
/// Fields grid_points and grid_span.
GridShape case_grid(const JsonValue& in);
/// Samples of a case: chi_star[n][l][f], xi[n][l][h], eps[n] and, where present, weights[n].
SampleValues sample_values(const JsonValue& in);

/// Appends loss, m, S, b and v.
void add_flow_point(CaseFields& out, const FlowPoint& point);

}  // namespace widelimit::specialization
