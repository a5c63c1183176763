#include "numerics/rows/formula_rows.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <span>
#include <utility>

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
#include "numerics/formula/vector_formulas.hpp"
#undef WIDELIMIT_ROWS_NAMESPACE

namespace widelimit::numerics {
namespace HWY_NAMESPACE {

/// The auxiliary numbers of a formula.
template <class Formula, typename N>
using Prepared = decltype(std::declval<const Formula&>().prepare(std::declval<const N&>()));

/// The functions of FormulaRows. `Shared` is the formula as others know it, Formula the same text compiled for this
/// instruction set: their numbers have the same places.
template <class Shared, class Formula>
struct FormulaLoops {
  static_assert(sizeof(Shared) == sizeof(Formula));

  template <typename Scalar>
  HWY_FLATTEN static void prepare(const Shared& shared, const Scalar* variance, Scalar* const* auxiliary,
                                  std::size_t size) {
    const auto formula = std::bit_cast<Formula>(shared);
    for_each_vector<Scalar>(size, [&](auto d, auto block) {
      const auto numbers = formula.prepare(Lanes<Scalar>(block.load(d, variance)));
      for (std::size_t k = 0; k < numbers.size(); ++k) block.store(d, numbers[k].vector, auxiliary[k]);
    });
  }

  template <typename Scalar>
  HWY_FLATTEN static void apply(const Shared& shared, const DualRow<Scalar>& row) {
    apply_to(std::bit_cast<Formula>(shared), row,
             std::make_index_sequence<std::tuple_size_v<Prepared<Formula, Lanes<Scalar>>>>());
  }

  /// Whether the formula has slopes of its own.
  template <typename Scalar>
  static constexpr bool has_slopes = requires(const Formula& formula, std::span<const Lanes<Scalar>> numbers,
                                              Lanes<Scalar> c) {
    formula.template slopes<Lanes<Scalar>>(numbers, numbers, c);
  };

  template <typename Scalar>
  HWY_FLATTEN static void apply_adjoint(const Shared& shared, const AdjointRow<Scalar>& all) {
    using Number = Lanes<Scalar>;
    const auto formula = std::bit_cast<Formula>(shared);
    // A copy: stores might alias the row's pointers.
    const AdjointRow<Scalar> row = all;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const auto load = [&](const Scalar* numbers) { return Number(block.load(d, numbers)); };
      const MappedSlopes<Number> slopes = slopes_of<Scalar>(formula, row, load);
      const Number above = load(row.nngp_adjoint);
      Number product(0);
      if (row.ntk_adjoint != nullptr) {
        const Number ntk_above = load(row.ntk_adjoint);
        // The product T'-bar T multiplies the slopes of the factor (docs/theory/derivatives.md, section 1).
        product = ntk_above * load(row.ntk);
        block.store(d, (ntk_above * slopes.mapped.factor).vector, row.ntk_adjoint);
      }
      const auto through = [&](const Mapped<Number>& slope, Scalar* adjoint) {
        block.store(d, fused(above, slope.value, product * slope.factor).vector, adjoint);
      };
      through(slopes.covariance, row.nngp_adjoint);
      through(slopes.left, row.left_adjoint);
      through(slopes.right, row.right_adjoint);
    });
  }

 private:
  template <typename Scalar, class Load>
  static HWY_INLINE MappedSlopes<Lanes<Scalar>> slopes_of(const Formula& formula,
                                                          const AdjointRow<Scalar>& row, const Load& load) {
    using Number = Lanes<Scalar>;
    const Number p = load(row.left_variance), q = load(row.right_variance), c = load(row.nngp);
    if constexpr (has_slopes<Scalar>) {
      // Formulas with slopes of their own have the variance and one more number.
      const std::array<Number, 2> left{p, load(row.left[1])}, right{q, load(row.right[1])};
      return formula.template slopes<Number>(left, right, c);
    } else {
      using Slopes = Jet<Number, 3>;
      const Mapped<Slopes> mapped =
          formula.template apply<Slopes>(formula.prepare(Slopes::variable(p, 0)),
                                         formula.prepare(Slopes::variable(q, 1)), Slopes::variable(c, 2));
      const auto along = [&](std::size_t k) {
        return Mapped<Number>{mapped.value.slopes[k], mapped.factor.slopes[k]};
      };
      return {{mapped.value.value, mapped.factor.value}, along(0), along(1), along(2)};
    }
  }

  template <typename Scalar, std::size_t... k>
  static HWY_INLINE void apply_to(const Formula& formula, const DualRow<Scalar>& row,
                                  std::index_sequence<k...> /*auxiliary numbers*/) {
    using Number = Lanes<Scalar>;
    // Stores might alias the row's table of pointers, so they are read first.
    const std::array<const Scalar*, sizeof...(k)> left{row.left[k]...}, right{row.right[k]...};
    Scalar *nngp = row.nngp, *ntk = row.ntk;
    for_each_vector<Scalar>(row.size, [&](auto d, auto block) {
      const auto load = [&](const Scalar* numbers) { return Number(block.load(d, numbers)); };
      const std::array<Number, sizeof...(k)> of_left{load(left[k])...}, of_right{load(right[k])...};
      const Mapped<Number> mapped = formula.template apply<Number>(of_left, of_right, load(nngp));
      block.store(d, mapped.value.vector, nngp);
      if (ntk != nullptr) block.store(d, (mapped.factor * load(ntk)).vector, ntk);
    });
  }
};

template <typename Scalar>
bool has_all_variances(VarianceRange<Scalar> range, const Scalar* left, const Scalar* right,
                       std::size_t size) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::ScalableTag<Scalar> tag;
  const auto zero = hn::Zero(tag), one = hn::Set(tag, Scalar{1});
  auto least = one, most = zero;
  for_each_vector<Scalar>(size, [&](auto d, auto block) {
    const auto p = block.load(d, left), q = block.load(d, right);
    most = hn::Max(most, hn::Max(p, q));
    if (range.least == 0) return;
    least = hn::Min(least, hn::IfThenElse(hn::Eq(p, zero), one, p));
    least = hn::Min(least, hn::IfThenElse(hn::Eq(q, zero), one, q));
  });
  return hn::AllTrue(
      tag, hn::And(hn::Le(most, hn::Set(tag, range.most)), hn::Ge(least, hn::Set(tag, range.least))));
}

template <class Shared, class Formula, typename Scalar>
constexpr typename FormulaRows<Shared>::template In<Scalar> functions_in() {
  using Loops = FormulaLoops<Shared, Formula>;
  if constexpr (sizeof(Scalar) == sizeof(double) || Loops::template has_slopes<Scalar>)
    return {&Loops::template prepare<Scalar>, &Loops::template apply<Scalar>,
            &Loops::template apply_adjoint<Scalar>};
  else
    return {&Loops::template prepare<Scalar>, &Loops::template apply<Scalar>, nullptr};
}

template <class... Shared, class... Formula>
constexpr FormulaTables<std::tuple<Shared...>> tables_of(const std::tuple<Shared...>* /*shared*/,
                                                         const std::tuple<Formula...>* /*compiled here*/) {
  return {{FormulaRows<Shared>{functions_in<Shared, Formula, float>(),
                               functions_in<Shared, Formula, double>()}...},
          {&has_all_variances<float>, &has_all_variances<double>}};
}

const FormulaTables<formula::VectorFormulas>* best_tables() {
  static constexpr auto tables = tables_of(static_cast<const formula::VectorFormulas*>(nullptr),
                                           static_cast<const VectorFormulas*>(nullptr));
  return &tables;
}

}  // namespace HWY_NAMESPACE
}  // namespace widelimit::numerics
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace widelimit::numerics {

HWY_EXPORT(best_tables);

const FormulaTables<formula::VectorFormulas>& formula_tables() {
  static const FormulaTables<formula::VectorFormulas>& tables = *HWY_DYNAMIC_DISPATCH(best_tables)();
  return tables;
}

}  // namespace widelimit::numerics
#endif  // HWY_ONCE
