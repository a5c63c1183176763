#include "widelimit/layers/matern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "layers/kind_rows.hpp"
#include "network/layer_model.hpp"
#include "numerics/adjoint_entry.hpp"
#include "numerics/determinant.hpp"
#include "numerics/formula/matern_formula.hpp"
#include "widelimit/error.hpp"
#include "widelimit/network/finite_layer.hpp"

namespace widelimit::layers {
namespace {

/// Far beyond lengths that mean anything, and within what float can square.
constexpr double least_length = 1e-9, most_length = 1e9;

class MaternStage final : public RowStageOf<MaternStage>, public numerics::formula::Readable {
 public:
  explicit MaternStage(numerics::formula::MaternFormula formula) : formula_{formula} {}

  StageRules rules() const override {
    return {.accepts = StageRules::Accepts::gaussian,
            .leaves = StageRules::Leaves::not_gaussian,
            .own_weights = false};
  }
  std::size_t auxiliary_count() const override { return 1; }
  Multiples multiples() const override { return Multiples::equal; }
  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::row_formula(formula_);
  }
  void apply_to_multiples(const numerics::DualRow<float>& row) const override { multiples_row(row); }
  void apply_to_multiples(const numerics::DualRow<double>& row) const override { multiples_row(row); }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    std::copy_n(variance, positions, auxiliary[0]);
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) write(row, i, row.nngp[i]);
  }

  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i)
      numerics::write_adjoint(
          row, i,
          numerics::formula::slopes_of(formula_, static_cast<double>(row.left_variance[i]),
                                       static_cast<double>(row.right_variance[i]),
                                       static_cast<double>(row.nngp[i])));
  }
  /// An input with itself has the kernel 1, whatever its variance.
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    std::fill_n(row.nngp_adjoint, row.size, Scalar{0});
    if (row.ntk_adjoint != nullptr) std::fill_n(row.ntk_adjoint, row.size, Scalar{0});
  }

 private:
  template <typename Scalar>
  void write(const numerics::DualRow<Scalar>& row, std::size_t i, Scalar covariance) const {
    row.nngp[i] = formula_
                      .apply<Scalar>(std::span<const Scalar>(row.left[0] + i, 1),
                                     std::span<const Scalar>(row.right[0] + i, 1), covariance)
                      .value;
    if (row.ntk != nullptr) row.ntk[i] = 0;
  }
  template <typename Scalar>
  void multiples_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i)
      write(row, i,
            static_cast<Scalar>(numerics::perfect_covariance(row.left[0][i], row.right[0][i], row.nngp[i])
                                    .value_or(static_cast<double>(row.nngp[i]))));
  }

  numerics::formula::MaternFormula formula_;
};

class Matern final : public LayerModel, public numerics::formula::Readable {
 public:
  Matern(double smoothness, double length) : smoothness_{smoothness}, length_{length} {
    if (smoothness != 0.5 && smoothness != 1.5 && smoothness != 2.5)
      throw ArgumentError(fmt::format("matern: smoothness must be 0.5, 1.5 or 2.5, got {}", smoothness));
    if (!(length >= least_length && length <= most_length))
      throw ArgumentError(
          fmt::format("matern: length must be from {} to {}, got {}", least_length, most_length, length));
  }

  std::string kind() const override { return "matern"; }
  nlohmann::ordered_json fields() const override {
    return {{"smoothness", smoothness_}, {"length", length_}};
  }

  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::row_formula(entries());
  }
  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return lowering.row(input, std::make_shared<MaternStage>(entries()));
  }

  /// There is none: a mixture of sines of drawn scales has this kernel, and no function of one number.
  finite::CounterpartPointer finite_counterpart() const override { return nullptr; }

 private:
  [[nodiscard]] numerics::formula::MaternFormula entries() const {
    return {.order = static_cast<int>(smoothness_), .scale = 2 * smoothness_ / length_ / length_};
  }

  double smoothness_;
  double length_;
};

}  // namespace

Layer matern(double smoothness, double length) { return Layer(std::make_shared<Matern>(smoothness, length)); }

void add_matern_kinds(KindRows& rows) {
  rows.push_back(
      {{.name = "matern",
        .group = KindGroup::activation,
        .fields = {{.name = "smoothness",
                    .default_value = "1.5",
                    .minimum = 0.5,
                    .maximum = 2.5,
                    .meaning = "0.5 (the Laplace kernel), 1.5 or 2.5"},
                   {.name = "length", .default_value = "1", .minimum = least_length, .maximum = most_length}},
        .does = "a Matern kernel, of no function of a number",
        .nngp =
            "exp(-s), (1 + s) exp(-s) or (1 + s + s^2 / 3) exp(-s), s = sqrt(2 smoothness (p + q - 2K)) / "
            "length",
        .ntk = "0: features that are not trained",
        .limits =
            "It has no finite networks. The Laplace kernel has an error of 5e-4 sqrt(p) / length for nearly "
            "equal inputs in float.",
        .source = "Rasmussen and Williams 2006, equation 4.17",
        .dual = DualForm::closed,
        .example = R"({"smoothness": 2.5, "length": 0.8})"},
       [](KindFields& fields) { return matern(fields.number("smoothness"), fields.number("length")); }});
}

}  // namespace widelimit::layers
