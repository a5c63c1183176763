// Rows include this text once more for every instruction set, in the namespace of it (numerics/rows/formula_rows.cpp).
#if !defined(WIDELIMIT_FORMULA_VECTOR_FORMULAS) || defined(WIDELIMIT_ROWS_NAMESPACE)
#define WIDELIMIT_FORMULA_VECTOR_FORMULAS

// In this order: there they include nothing themselves.
#include "numerics/formula/arc.hpp"
//
#include "numerics/formula/tilted.hpp"
#include "numerics/formula/waves.hpp"
//
#include "numerics/formula/erf.hpp"
#include "numerics/formula/gabor.hpp"
#include "numerics/formula/gaussian.hpp"
#include "numerics/formula/gelu.hpp"
#include "numerics/formula/linear.hpp"
#include "numerics/formula/rectified.hpp"

#ifdef WIDELIMIT_ROWS_NAMESPACE
namespace widelimit::numerics::WIDELIMIT_ROWS_NAMESPACE {
#else
#include <tuple>

namespace widelimit::numerics::formula {
#endif

/// The nonlinearities in closed form whose rows are vectors of their formulas: a new one is entered here. Those that
/// jump are done entry by entry: float does not know the angle of nearly equal variables.
using VectorFormulas = std::tuple<LinearFormula, ErfFormula, GeluFormula, GaussianFormula, WaveFormula,
                                  RadialFormula, GrowthFormula, GaborFormula, RectifiedFormula>;
}

#endif
