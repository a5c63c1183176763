#pragma once

#include "numerics/formula/homogeneous_formulas.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// The backward passes of activations (Activation::apply_adjoint()) through their formulas, read as vectors of jets, by
/// the best instruction set of this machine. Auxiliary numbers are not read. Every variance must be 0 or within the
/// range of the formula (formula/activation_slopes.hpp).
void backward_pass(const formula::RectifiedFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::ErfFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::GeluFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::GaussianFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::WaveFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::RadialFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::GrowthFormula& formula, const AdjointRow<double>& row);
void backward_pass(const formula::GaborFormula& formula, const AdjointRow<double>& row);

}  // namespace widelimit::numerics
