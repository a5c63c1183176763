#pragma once

#include <map>
#include <string>

#include "check_cases.hpp"
#include "widelimit/specialization/loss.hpp"
#include "widelimit/specialization/quadrature.hpp"

/// The deterministic reference cases, one file a subject: how each recomputes its fields from its inputs.
namespace widelimit::specialization {

using CaseTable = std::map<std::string, CaseFields (*)(const JsonFields&)>;

void add_loss_cases(CaseTable& table);
void add_hessian_cases(CaseTable& table);
void add_sgd_cases(CaseTable& table);
void add_trained_heads_cases(CaseTable& table);
void add_bayes_cases(CaseTable& table);

/// A list of number lists as a matrix.
Matrix<double> case_matrix(const JsonValue& rows);
/// Fields m, r, b, v.
HeadParameters case_parameters(const JsonFields& in);
/// Fields grid_points and grid_span.
GridShape case_grid(const JsonFields& in);

}  // namespace widelimit::specialization
