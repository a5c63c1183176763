#include "python_activation.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "arrays.hpp"
#include "tabulated_function.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/quadrature_activation.hpp"

namespace widelimit::python {

namespace nb = nanobind;

namespace {

/// A Python function of arrays, for numbers in C++.
class NumericFunction {
 public:
  /// `results`: how many numbers it returns for each that it gets.
  explicit NumericFunction(const HeldFunction& function, std::size_t results = 1)
      : function_{function}, results_{results} {}

  /// The function of arrays of `size` numbers, each copied; written to `result`.
  template <typename... Pointers>
  void operator()(double* result, std::size_t size, const Pointers*... arguments) const {
    const nb::gil_scoped_acquire locked;
    const auto numbers = nb::cast<Array<double>>(as_double_array(function_(copied(arguments, size)...)));
    const bool is_constant = numbers.ndim() == 0;
    if (!is_constant && numbers.size() != results_ * size)
      throw ArgumentError(
          "a nonlinearity's function must return an array of the size that it got: expected " +
          std::to_string(results_ * size) + " numbers, got " + std::to_string(numbers.size()));
    for (std::size_t i = 0; i < results_ * size; ++i) result[i] = numbers.data()[is_constant ? 0 : i];
  }

 private:
  template <typename Scalar>
  static nb::object copied(const Scalar* numbers, std::size_t size) {
    return array_of(Vector<double>(
        Eigen::Map<const Vector<Scalar>>(numbers, static_cast<Index>(size)).template cast<double>()));
  }

  SharedFunction function_;
  std::size_t results_;
};

class DualFromPython final : public numerics::Activation {
 public:
  DualFromPython(NumericFunction nngp, std::optional<NumericFunction> derivative,
                 std::optional<NumericFunction> slopes)
      : nngp_{std::move(nngp)}, derivative_{std::move(derivative)}, slopes_{std::move(slopes)} {}

  double value(double) const override { throw no_function(); }
  double derivative(double) const override { throw no_function(); }

  numerics::Dual<double> dual(double p, double q, double c) const override {
    numerics::Dual<double> result{0, 0};
    nngp_(&result.value, 1, &p, &q, &c);
    if (derivative_) (*derivative_)(&result.derivative, 1, &p, &q, &c);
    return result;
  }

  void apply(const numerics::DualRow<float>& row) const override { apply_row(row); }
  void apply(const numerics::DualRow<double>& row) const override { apply_row(row); }

  numerics::DualSlopes slopes(double p, double q, double c) const override {
    if (!slopes_) return Activation::slopes(p, q, c);
    std::array<double, 6> all{};
    (*slopes_)(all.data(), 1, &p, &q, &c);
    return {dual(p, q, c), {all[0], all[3]}, {all[1], all[4]}, all[5], all[2]};
  }
  void apply_adjoint(const numerics::AdjointRow<float>& row) const override { backward_pass(row); }
  void apply_adjoint(const numerics::AdjointRow<double>& row) const override { backward_pass(row); }

 private:
  /// One call of the functions for a row.
  template <typename Scalar>
  void backward_pass(const numerics::AdjointRow<Scalar>& row) const {
    if (!slopes_) return Activation::apply_adjoint(row);
    const bool with_ntk = row.ntk_adjoint != nullptr;
    std::vector<double> all(6 * row.size), factors(with_ntk ? row.size : 0);
    (*slopes_)(all.data(), row.size, row.left_variance, row.right_variance, row.nngp);
    if (with_ntk) (*derivative_)(factors.data(), row.size, row.left_variance, row.right_variance, row.nngp);
    for (std::size_t i = 0; i < row.size; ++i) {
      const auto above = static_cast<double>(row.nngp_adjoint[i]);
      double product = 0;
      if (with_ntk) {
        const auto ntk_above = static_cast<double>(row.ntk_adjoint[i]);
        product = ntk_above * static_cast<double>(row.ntk[i]);
        row.ntk_adjoint[i] = static_cast<Scalar>(ntk_above * factors[i]);
      }
      const auto through = [&](std::size_t k) {
        return static_cast<Scalar>(above * all[k * row.size + i] + product * all[(k + 3) * row.size + i]);
      };
      row.left_adjoint[i] = through(0);
      row.right_adjoint[i] = through(1);
      row.nngp_adjoint[i] = through(2);
    }
  }

  static ArgumentError no_function() {
    return ArgumentError("a nonlinearity of which only the dual is known has no finite network");
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    std::vector<double> slopes(row.ntk == nullptr ? 0 : row.size), values(row.size);
    if (row.ntk != nullptr) {
      if (!derivative_)
        throw ArgumentError("the NTK needs the derivative's dual, and this nonlinearity came without one");
      (*derivative_)(slopes.data(), row.size, row.left[0], row.right[0], row.nngp);
    }
    nngp_(values.data(), row.size, row.left[0], row.right[0], row.nngp);
    for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] = static_cast<Scalar>(values[i]);
    // Law 6: what is 0 stays 0, whatever the slope of a dual at variance 0 is.
    for (std::size_t i = 0; i < slopes.size(); ++i)
      if (row.ntk[i] != 0) row.ntk[i] *= static_cast<Scalar>(slopes[i]);
  }

  NumericFunction nngp_;
  std::optional<NumericFunction> derivative_;
  std::optional<NumericFunction>
      slopes_;  ///< [6, n]: of the value and of the derivative, in p, q and c each.
};

numerics::FunctionValues values_of(const HeldFunction& function) {
  return [shared = NumericFunction(function)](std::span<const double> x, double* values) {
    shared(values, x.size(), x.data());
  };
}

}  // namespace

numerics::ActivationPtr activation_from_dual(const HeldFunction& nngp, const HeldFunction* derivative,
                                             const HeldFunction* slopes) {
  std::optional<NumericFunction> factor, all;
  if (derivative != nullptr) factor.emplace(*derivative);
  if (slopes != nullptr) all.emplace(*slopes, 6);
  return std::make_shared<DualFromPython>(NumericFunction(nngp), std::move(factor), std::move(all));
}

numerics::ActivationPtr activation_from_function(const std::string& kind, const HeldFunction& phi,
                                                 const HeldFunction* derivative,
                                                 const std::vector<double>& breakpoints) {
  const numerics::FunctionValues values = values_of(phi);
  numerics::FunctionValues slopes;
  if (derivative != nullptr) slopes = values_of(*derivative);
  // Threads of the library call the functions and wait for the lock.
  const nb::gil_scoped_release unlocked;
  // Kinks are found of the functions themselves: tables of them are smooth between breakpoints only.
  numerics::QuadratureOptions options =
      numerics::with_kinks(values, {.breakpoints = breakpoints, .name = kind});
  if (slopes) options = numerics::with_kinks(slopes, std::move(options));
  options.finds_kinks = false;
  const TabulatedFunction value(values, options);
  // Differences would ask for twenty values of the table at each node of a rule.
  if (!slopes)
    return numerics::quadrature_activation(
        value, [value](double x) { return value.derivative(x); }, options);
  return numerics::quadrature_activation(value, TabulatedFunction(slopes, options), options);
}

}  // namespace widelimit::python
