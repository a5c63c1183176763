#pragma once

#include "check_cases.hpp"
#include "read_prior.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/quadrature.hpp"

/// What the deterministic and the stochastic reference cases read alike.
namespace widelimit::specialization {

/// Field activation.
HeadActivation activation_of(const JsonValue& in);
/// Fields m, r, b, v.
HeadParameters case_parameters(const JsonValue& in);

/// Appends loss, m, S, b and v.
void add_flow_point(CaseFields& out, const FlowPoint& point);

}  // namespace widelimit::specialization
