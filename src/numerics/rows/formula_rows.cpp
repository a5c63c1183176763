#include "numerics/rows/formula_rows.hpp"

#include "numerics/formula/homogeneous_formulas.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#include "numerics/rows/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "numerics/rows/formula_rows.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "numerics/rows/lanes-inl.hpp"
#include "numerics/rows/row_loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace widelimit::numerics {
namespace HWY_NAMESPACE {
using namespace formula;  // NOLINT: what formulas share that is not compiled for an instruction set
}
}  // namespace widelimit::numerics
// Functions on vectors must be compiled for the instruction set that they are inlined into.
#define WIDELIMIT_ROWS_NAMESPACE HWY_NAMESPACE
#include "widelimit/numerics/formula/jet.hpp"
//
#include "numerics/formula/arc.hpp"
//
#include "numerics/formula/homogeneous_formulas.hpp"
#include "numerics/formula/smooth_formulas.hpp"
#undef WIDELIMIT_ROWS_NAMESPACE

namespace widelimit::numerics {
namespace HWY_NAMESPACE {

template <class Formula>
HWY_FLATTEN void go_back_by(const Formula& formula, const AdjointRow<double>& all) {
  using Number = Jet<Lanes, 3>;
  // A copy: stores might alias the row's pointers.
  const AdjointRow<double> row = all;
  for_each_vector<double>(row.size, [&](auto d, auto block) {
    const auto load = [&](const double* numbers) { return Lanes(block.load(d, numbers)); };
    const Number p = Number::variable(load(row.left_variance), 0),
                 q = Number::variable(load(row.right_variance), 1);
    const Mapped<Number> mapped = formula.template apply<Number>(formula.prepare(p), formula.prepare(q),
                                                                 Number::variable(load(row.nngp), 2));
    const Lanes above = load(row.nngp_adjoint);
    Lanes product(0);
    if (row.ntk_adjoint != nullptr) {
      const Lanes ntk_above = load(row.ntk_adjoint);
      // The product T'-bar T multiplies the slopes of the factor (docs/theory/derivatives.md, section 1).
      product = ntk_above * load(row.ntk);
      block.store(d, (ntk_above * mapped.factor.value).vector, row.ntk_adjoint);
    }
    const auto through = [&](std::size_t k, double* adjoint) {
      block.store(d, fused(above, mapped.value.slopes[k], product * mapped.factor.slopes[k]).vector, adjoint);
    };
    through(2, row.nngp_adjoint);
    through(0, row.left_adjoint);
    through(1, row.right_adjoint);
  });
}

void rectified(const formula::RectifiedFormula& of, const AdjointRow<double>& row) {
  go_back_by(RectifiedFormula{of.degree, of.jump_tolerance}, row);
}
void erf(const formula::ErfFormula& of, const AdjointRow<double>& row) {
  go_back_by(ErfFormula{{of.dual}}, row);
}
void gelu(const formula::GeluFormula& of, const AdjointRow<double>& row) {
  go_back_by(GeluFormula{{of.dual}}, row);
}
void gaussian(const formula::GaussianFormula& of, const AdjointRow<double>& row) {
  go_back_by(GaussianFormula{{of.dual}}, row);
}
void wave(const formula::WaveFormula& of, const AdjointRow<double>& row) {
  go_back_by(WaveFormula(of.dual), row);
}
void radial(const formula::RadialFormula& of, const AdjointRow<double>& row) {
  go_back_by(RadialFormula(of.dual), row);
}
void growth(const formula::GrowthFormula& of, const AdjointRow<double>& row) {
  go_back_by(GrowthFormula(of.dual), row);
}
void gabor(const formula::GaborFormula& /*of*/, const AdjointRow<double>& row) {
  go_back_by(GaborFormula{}, row);
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(rectified);
HWY_EXPORT(erf);
HWY_EXPORT(gelu);
HWY_EXPORT(gaussian);
HWY_EXPORT(wave);
HWY_EXPORT(radial);
HWY_EXPORT(growth);
HWY_EXPORT(gabor);

template <>
void backward_pass(const formula::RectifiedFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(rectified)(of, row);
}
template <>
void backward_pass(const formula::ErfFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(erf)(of, row);
}
template <>
void backward_pass(const formula::GeluFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(gelu)(of, row);
}
template <>
void backward_pass(const formula::GaussianFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(gaussian)(of, row);
}
template <>
void backward_pass(const formula::WaveFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(wave)(of, row);
}
template <>
void backward_pass(const formula::RadialFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(radial)(of, row);
}
template <>
void backward_pass(const formula::GrowthFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(growth)(of, row);
}
template <>
void backward_pass(const formula::GaborFormula& of, const AdjointRow<double>& row) {
  HWY_DYNAMIC_DISPATCH(gabor)(of, row);
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
