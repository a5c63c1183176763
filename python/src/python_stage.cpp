#include "python_stage.hpp"

#include <optional>
#include <string>
#include <utility>

#include "arrays.hpp"
#include "widelimit/error.hpp"

namespace widelimit::python {

namespace nb = nanobind;

namespace {

class StageFromPython final : public PairStageOf<StageFromPython> {
 public:
  StageFromPython(SharedFunction transform, std::optional<SharedFunction> adjoint, StageRules rules)
      : transform_{std::move(transform)}, adjoint_{std::move(adjoint)}, rules_{rules} {}

  StageRules rules() const override { return rules_; }
  Shape output_shape(const Shape& input) const override { return input; }

  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  bool has_adjoint() const override { return adjoint_.has_value(); }

  /// The function returns the adjoints of its arguments before the last two, which are those of the results.
  template <typename Scalar>
  void adjoint_pair(const PairView<Scalar>& pair, const PairAdjoint<Scalar>& adjoint) const {
    const nb::gil_scoped_acquire locked;
    const bool with_ntk = pair.ntk.size() > 0;
    const nb::object returned = (*adjoint_)(
        as_array(pair.nngp), with_ntk ? as_array(pair.ntk) : nb::none(),
        variances(pair.left_variance, pair.nngp.rows()), variances(pair.right_variance, pair.nngp.cols()),
        as_array(adjoint.nngp_after), with_ntk ? as_array(adjoint.ntk_after) : nb::none());
    const auto part = [&](int k) { return nb::cast<Array<double>>(as_double_array(returned[nb::int_(k)])); };
    // The views are copied, not what they show.
    auto nngp = adjoint.nngp, ntk = adjoint.ntk;
    nngp += matrix_of(part(0)).template cast<Scalar>();
    if (with_ntk) ntk += matrix_of(part(1)).template cast<Scalar>();
    const auto add = [](const Array<double>& numbers, Scalar* sums) {
      for (std::size_t i = 0; i < numbers.size(); ++i) sums[i] += static_cast<Scalar>(numbers.data()[i]);
    };
    add(part(2), adjoint.left_variance);
    add(part(3), adjoint.right_variance);
  }

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    const nb::gil_scoped_acquire locked;
    const bool with_ntk = pair.ntk.size() > 0;
    const nb::object returned = transform_(as_array(pair.nngp), with_ntk ? as_array(pair.ntk) : nb::none(),
                                           variances(pair.left_variance, pair.nngp.rows()),
                                           variances(pair.right_variance, pair.nngp.cols()));
    if (!nb::isinstance<nb::tuple>(returned) || nb::len(returned) != 2)
      throw ArgumentError("a pair layer's function must return (nngp, ntk)");
    store(returned[nb::int_(0)], "nngp", result.nngp);
    if (with_ntk) store(returned[nb::int_(1)], "ntk", result.ntk);
  }

 private:
  template <typename Numbers>
  static nb::object as_array(const Numbers& numbers) {
    return array_of(Matrix<double>(numbers.template cast<double>()));
  }

  template <typename Scalar>
  static nb::object variances(const Scalar* numbers, Index count) {
    return array_of(Vector<double>(Eigen::Map<const Vector<Scalar>>(numbers, count).template cast<double>()));
  }

  template <typename Target>
  static void store(const nb::object& value, const char* name, Target& target) {
    const auto array = nb::cast<Array<double>>(as_double_array(value));
    const auto rows = static_cast<std::size_t>(target.rows()),
               columns = static_cast<std::size_t>(target.cols());
    if (array.ndim() != 2 || array.shape(0) != rows || array.shape(1) != columns)
      throw ArgumentError(std::string("a pair layer's function must return ") + name + " of shape (" +
                          std::to_string(rows) + ", " + std::to_string(columns) + "), that of its argument");
    target = matrix_of(array).template cast<typename Target::Scalar>();
  }

  SharedFunction transform_;
  std::optional<SharedFunction> adjoint_;
  StageRules rules_;
};

}  // namespace

std::shared_ptr<const PairStage> stage_from_function(const HeldFunction& transform,
                                                     const HeldFunction* adjoint, StageRules rules) {
  std::optional<SharedFunction> back;
  if (adjoint != nullptr) back.emplace(*adjoint);
  return std::make_shared<StageFromPython>(SharedFunction(transform), std::move(back), rules);
}

}  // namespace widelimit::python
