#pragma once

#include "widelimit/numerics/dual.hpp"

namespace widelimit::numerics {

/// The backward passes of activations (Activation::apply_adjoint()) through their formulas, read as vectors of jets, by
/// the best instruction set of this machine. Auxiliary numbers are not read. Every variance must be 0 or within the
/// range of the formula (formula/activation_slopes.hpp).
/// formula_rows.cpp has them by name, one for each formula.
template <class Formula>
void backward_pass(const Formula& formula, const AdjointRow<double>& row);

}  // namespace widelimit::numerics
