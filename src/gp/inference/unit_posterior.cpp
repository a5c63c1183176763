#include "widelimit/gp/unit_posterior.hpp"

#include <cmath>
#include <numbers>

#include "widelimit/gp/kernel_solver.hpp"

namespace widelimit::gp {

/// log p(y) of docs/theory/inference.md, section 1, under the prior N(0, amplitude (K + lambda I)).
double log_evidence(double quadratic_form, double log_determinant, Index n, Index outputs, double amplitude) {
  const auto count = static_cast<double>(n);
  return -0.5 * (quadratic_form / amplitude +
                 static_cast<double>(outputs) *
                     (log_determinant + count * std::log(2 * std::numbers::pi * amplitude)));
}

double log_evidence(const Vector<double>& quadratic_forms, double log_determinant, Index n,
                    const Vector<double>& amplitudes) {
  if ((amplitudes.array() == amplitudes(0)).all())
    return log_evidence(quadratic_forms.sum(), log_determinant, n, amplitudes.size(), amplitudes(0));
  double sum = 0;
  for (Index c = 0; c < amplitudes.size(); ++c)
    sum += log_evidence(quadratic_forms(c), log_determinant, n, 1, amplitudes(c));
  return sum;
}

Matrix<double> SolverTargets::train_of(const std::vector<Index>& outputs) const {
  Matrix<double> columns(train.rows(), static_cast<Index>(outputs.size()));
  for (std::size_t k = 0; k < outputs.size(); ++k) columns.col(static_cast<Index>(k)) = train.col(outputs[k]);
  return columns;
}

}  // namespace widelimit::gp
