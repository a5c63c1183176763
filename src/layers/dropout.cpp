#include "widelimit/layers/dropout.hpp"

#include <fmt/format.h>

#include "layers/finite/pointwise.hpp"
#include "layers/kind_rows.hpp"
#include "network/layer_model.hpp"
#include "network/linear_adjoints.hpp"
#include "numerics/formula/stages.hpp"
#include "widelimit/error.hpp"

namespace widelimit::layers {
namespace {

/// Divides the kernels of a position with itself by `keep`. Entries of different inputs or positions do not change,
/// because their draws are independent.
class DropoutStage final : public RowStageOf<DropoutStage>, public numerics::formula::Readable {
 public:
  explicit DropoutStage(double keep) : keep_{keep} {}

  StageRules rules() const override { return {.leaves = StageRules::Leaves::not_gaussian}; }
  std::size_t auxiliary_count() const override { return 0; }
  numerics::formula::RowFormulaPointer formula() const override {
    return numerics::formula::row_formula(numerics::formula::DropoutFormula{keep_});
  }

  template <typename Scalar>
  void prepare_row(const Scalar*, std::size_t, Scalar* const*) const {}

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>&) const {}

  template <typename Scalar>
  void adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    clear_variance_adjoints(row);
  }
  template <typename Scalar>
  void self_adjoint_row(const numerics::AdjointRow<Scalar>& row) const {
    divide(adjoints_as_row(row));
  }

  void apply_self(const numerics::DualRow<float>& row) const override { divide(row); }
  void apply_self(const numerics::DualRow<double>& row) const override { divide(row); }

 private:
  template <typename Scalar>
  void divide(const numerics::DualRow<Scalar>& row) const {
    const auto keep = static_cast<Scalar>(keep_);
    for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] /= keep;
    if (row.ntk != nullptr)
      for (std::size_t i = 0; i < row.size; ++i) row.ntk[i] /= keep;
  }

  double keep_;
};

class Dropout final : public LayerModel {
 public:
  explicit Dropout(double keep) : keep_{keep} {
    if (!(keep > 0 && keep <= 1))
      throw ArgumentError(fmt::format("dropout: keep must be in (0, 1], got {}", keep));
  }

  std::string kind() const override { return "dropout"; }
  nlohmann::ordered_json fields() const override { return {{"keep", keep_}}; }

  LoweredState lower(Lowering& lowering, const LoweredState& input) const override {
    return lowering.row(input, std::make_shared<DropoutStage>(keep_));
  }

  finite::CounterpartPointer finite_counterpart() const override {
    return finite::dropout_counterpart(keep_);
  }

 private:
  double keep_;
};

}  // namespace

Layer dropout(double keep) { return Layer(std::make_shared<Dropout>(keep)); }

void add_dropout_kinds(KindRows& rows) {
  rows.push_back(
      {{.name = "dropout",
        .group = KindGroup::dropout,
        .fields = {{.name = "keep",
                    .minimum = 0,
                    .maximum = 1,
                    .above_minimum = true,
                    .meaning = "the probability of keeping a unit"}},
        .does =
            "Keeps each unit with probability `keep` and divides it by that, in training and in evaluation",
        .nngp = "K; variances of a position with itself are divided by keep",
        .ntk = "T, and the same",
        .limits = "May follow anything; leaves channels that are not Gaussian.",
        .cost = "nothing",
        .source = "Srivastava et al. 2014, section 4; docs/theory/kernel-recursion.md, section 2.3",
        .example = R"({"keep": 0.7})"},
       [](KindFields& fields) { return dropout(fields.number("keep")); }});
}

}  // namespace widelimit::layers
