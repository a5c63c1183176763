// What check_laws() says of stages that break a law, and of networks that it cannot check.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>

#include "widelimit/error.hpp"
#include "widelimit/kernel/laws.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/dropout.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/activations.hpp"
#include "widelimit/numerics/dual_activation.hpp"

namespace widelimit::testing {
namespace {

using namespace widelimit::layers;

TEST_CASE("what cannot be checked is an error") {
  LawOptions vectors;
  vectors.shapes = {{}};
  CHECK_THROWS_WITH_AS(static_cast<void>(check_laws(flatten(), vectors)),
                       doctest::Contains("the layer flatten can be used with none of the shapes given"),
                       NetworkError);
  LawOptions one;
  one.inputs = 1;
  CHECK_THROWS_WITH_AS(static_cast<void>(check_laws(dense(), one)),
                       "check_laws: inputs must be at least 2, got 1", ArgumentError);
  LawOptions channels;
  channels.channels = 0;
  CHECK_THROWS_WITH_AS(static_cast<void>(check_laws(dense(), channels)),
                       "check_laws: channels must be at least 1, got 0", ArgumentError);
}

// Negative controls: stages that break a law on purpose.

enum class Fault {
  none,
  exchange,
  negative,
  demand,
  unrepeatable,
  tiles,
  self,
  precision,
  not_finite,
  gaps,
  zero_variance,
  not_finite_at_zero,
  ntk_forgotten
};

class FaultyPair final : public PairStageOf<FaultyPair> {
 public:
  explicit FaultyPair(Fault fault) : fault_{fault} {}
  StageRules rules() const override { return {.leaves = StageRules::Leaves::not_gaussian}; }
  Shape output_shape(const Shape& input) const override { return input; }
  template <typename Scalar>
  void prepare_input(const SelfView<Scalar>&, Scalar*) const {}

  template <typename Scalar>
  void apply_pair(const PairView<Scalar>& pair, PairResult<Scalar>& result) const {
    result.nngp = factor(pair) * pair.nngp;
    result.ntk = (fault_ == Fault::ntk_forgotten ? 0 : factor(pair)) * pair.ntk;
    if (fault_ == Fault::exchange) result.nngp.row(0) *= Scalar(0.5);
    if (fault_ == Fault::self && pair.same_input && pair.wanted == Entries::all)
      result.nngp.diagonal() *= Scalar(1.01);
  }

 private:
  template <typename Scalar>
  Scalar factor(const PairView<Scalar>& pair) const {
    if (fault_ == Fault::negative) return -1;
    if (fault_ == Fault::demand && pair.wanted == Entries::diagonal) return 2;
    if (fault_ == Fault::unrepeatable) return static_cast<Scalar>(1 + 1e-5 * (calls_++ % 97));
    if (fault_ == Fault::precision && sizeof(Scalar) == 4) return Scalar(1.01);
    if (fault_ == Fault::not_finite) return 1 / pair.left_variance[0];
    return 1;
  }

  Fault fault_;
  mutable std::atomic<int> calls_ = 0;
};

class FaultyRow final : public RowStageOf<FaultyRow> {
 public:
  explicit FaultyRow(Fault fault) : fault_{fault} {}
  StageRules rules() const override { return {.leaves = StageRules::Leaves::not_gaussian}; }
  std::size_t auxiliary_count() const override { return 1; }
  bool clears_gaps() const override { return fault_ == Fault::gaps; }

  template <typename Scalar>
  void prepare_row(const Scalar* variance, std::size_t positions, Scalar* const* auxiliary) const {
    std::copy_n(variance, positions, auxiliary[0]);
  }

  template <typename Scalar>
  void apply_row(const numerics::DualRow<Scalar>& row) const {
    for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] *= factor(row, i);
    if (fault_ == Fault::gaps)
      for (std::size_t i = 0; i < row.size; ++i) row.nngp[i] += 1;
    if (fault_ == Fault::ntk_forgotten && row.ntk != nullptr) std::fill_n(row.ntk, row.size, Scalar{0});
    if (fault_ == Fault::zero_variance && row.ntk != nullptr)
      for (std::size_t i = 0; i < row.size; ++i)
        if (!(row.left[0][i] > 0 && row.right[0][i] > 0)) row.ntk[i] = 0;
    if (fault_ == Fault::not_finite_at_zero)
      for (std::size_t i = 0; i < row.size; ++i)
        if (!(row.left[0][i] > 0 && row.right[0][i] > 0))
          row.nngp[i] = std::numeric_limits<Scalar>::quiet_NaN();
  }

 private:
  template <typename Scalar>
  Scalar factor(const numerics::DualRow<Scalar>& row, std::size_t i) const {
    if (fault_ == Fault::exchange) return 1 / (1 + row.left[0][i]);
    if (fault_ == Fault::negative) return -1;
    if (fault_ == Fault::tiles) return static_cast<Scalar>(1 + 0.001 * static_cast<double>(i));
    if (fault_ == Fault::unrepeatable) return static_cast<Scalar>(1 + 1e-5 * (calls_++ % 97));
    if (fault_ == Fault::precision && sizeof(Scalar) == 4) return Scalar(1.01);
    if (fault_ == Fault::not_finite) return 1 / (row.left[0][i] * row.right[0][i]);
    return 1;
  }

  Fault fault_;
  mutable std::atomic<int> calls_ = 0;
};

bool fails(const Layer& layer, const std::string& law) {
  const LawReport report = check_laws(layer);
  const auto row =
      std::find_if(report.rows.begin(), report.rows.end(), [&](const LawRow& r) { return r.law == law; });
  INFO(to_string(report));
  REQUIRE(row != report.rows.end());
  CHECK(report.passed() == row->passed);
  return !row->passed;
}

Layer faulty_pair(Fault fault) { return pair_layer("faulty pair", std::make_shared<FaultyPair>(fault)); }
Layer faulty_row(Fault fault) { return row_layer("faulty row", std::make_shared<FaultyRow>(fault)); }

TEST_CASE("a pair stage that breaks a law fails it") {
  CHECK(check_laws(faulty_pair(Fault::none)).passed());
  CHECK(fails(faulty_pair(Fault::exchange), "exchange"));
  CHECK(fails(faulty_pair(Fault::negative), "positive semidefinite"));
  CHECK(fails(faulty_pair(Fault::demand), "demand"));
  CHECK(fails(faulty_pair(Fault::unrepeatable), "tiles and blocks"));
  CHECK(fails(faulty_pair(Fault::unrepeatable), "threads"));
  CHECK(fails(faulty_pair(Fault::self), "self"));
  CHECK(fails(faulty_pair(Fault::precision), "precision"));
  CHECK(fails(faulty_pair(Fault::not_finite), "finite"));
  CHECK(fails(faulty_pair(Fault::ntk_forgotten), "linear ntk"));
}

TEST_CASE("a row stage that breaks a law fails it") {
  CHECK(check_laws(faulty_row(Fault::none)).passed());
  CHECK(fails(faulty_row(Fault::exchange), "exchange"));
  CHECK(fails(faulty_row(Fault::negative), "positive semidefinite"));
  CHECK(fails(faulty_row(Fault::tiles), "tiles and blocks"));
  CHECK(fails(faulty_row(Fault::gaps), "tiles and blocks"));
  CHECK(fails(faulty_row(Fault::unrepeatable), "threads"));
  CHECK(fails(faulty_row(Fault::precision), "precision"));
  CHECK(fails(faulty_row(Fault::not_finite), "finite"));
  CHECK(fails(faulty_row(Fault::zero_variance), "zero variance"));
  CHECK(fails(faulty_row(Fault::ntk_forgotten), "linear ntk"));
  // The NTK of the same entries is right, and must not hide it.
  CHECK(fails(faulty_row(Fault::not_finite_at_zero), "zero variance"));
}

/// The dual of ReLU, but for pairs of equal positions.
TEST_CASE("a dual that jumps at c = p = q fails, in the NNGP or in the NTK") {
  const auto relu_beside = [](double value, double derivative) {
    const auto dual = numerics::relu();
    const auto at_tie = [](double p, double q, double c) { return p == q && c == p; };
    return nonlinearity("jumping", numerics::dual_activation([=](double p, double q, double c) {
                          numerics::Dual<double> entry = dual->dual(p, q, c);
                          if (!at_tie(p, q, c)) return entry;
                          return numerics::Dual<double>{entry.value * value, entry.derivative * derivative};
                        }));
  };
  CHECK_FALSE(fails(relu_beside(1, 1), "ties"));
  CHECK(fails(relu_beside(1.001, 1), "ties"));
  CHECK(fails(relu_beside(1, 1.001), "ties"));
  for (const Layer& layer : {sign(), rectified_monomial(0), relu(), erf(), dropout(0.7)})
    CHECK_FALSE(fails(layer, "ties"));
}

TEST_CASE("a layer without adjoints is told so, and passes") {
  const LawReport report = check_laws(faulty_pair(Fault::none));
  CHECK(report.passed());
  CHECK(report.rows.back().absent);
  CHECK(to_string(report).find("adjoints               absent  layers[0]") != std::string::npos);
  CHECK(report.rows.back().detail.find("has no adjoint") != std::string::npos);
  CHECK_FALSE(check_laws(relu()).rows.back().absent);
  CHECK_FALSE(check_laws(dense()).rows.back().absent);
}

TEST_CASE("a report prints one line a law") {
  const LawReport report{{{"exchange", true, "3 networks"}, {"self", false, "deviation 1"}}};
  CHECK(to_string(report) ==
        "exchange               passed  3 networks\n"
        "self                   FAILED  deviation 1\n");
  CHECK_FALSE(report.passed());
  CHECK_FALSE(LawReport{}.passed());
}

}  // namespace
}  // namespace widelimit::testing
