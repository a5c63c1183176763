#include "widelimit/gp/distinct_inputs.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/converged_flow.hpp"
#include "widelimit/gp/gradient_flow.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/gp/selection.hpp"
#include "widelimit/kernels.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

const Network wide({layers::dense({.weight_variance = 2, .bias_variance = 0.1}), layers::relu(),
                    layers::dense()});

/// These rows, one after the other.
Matrix<double> rows_of(const Matrix<double>& x, const std::vector<Index>& rows) {
  return x(rows, Eigen::all);
}

/// Each row twice, the second time at the end.
Matrix<double> doubled(const Matrix<double>& x) {
  Matrix<double> twice(2 * x.rows(), x.cols());
  twice << x, x;
  return twice;
}

Matrix<double> class_targets(const Matrix<double>& x) {
  Matrix<double> y(x.rows(), 1);
  for (Index i = 0; i < x.rows(); ++i) y(i, 0) = x(i, 0) + 0.7 * x(i, 1) * x(i, 2) > 0 ? 0.5 : -0.5;
  return y;
}

void check_same(const Model& one, const Model& other, const Matrix<double>& test) {
  CHECK(one.regulariser()(0) == Approx(other.regulariser()(0)).epsilon(1e-12));
  CHECK(one.amplitude()(0) == Approx(other.amplitude()(0)).epsilon(1e-9));
  CHECK(one.noise_variance()(0) == Approx(other.noise_variance()(0)).epsilon(1e-9));
  CHECK(one.law() == other.law());
  CHECK(one.class_calibration().scale == Approx(other.class_calibration().scale).epsilon(1e-6));
  const ModelPrediction first = one.predict(Inputs<double>(test)),
                        second = other.predict(Inputs<double>(test));
  CHECK(relative_difference(first.mean, second.mean) < 1e-9);
  CHECK(relative_difference(first.variance, second.variance) < 1e-7);
  if (first.class_probabilities.size() > 0)
    CHECK((first.class_probabilities - second.class_probabilities).cwiseAbs().maxCoeff() < 1e-6);
}

}  // namespace

TEST_CASE("distinct inputs: numbers, masks, graphs and lengths tell inputs apart, 0 is -0") {
  Matrix<double> x(5, 2);
  x << 1, 0, 2, 3, 1, -0.0, 2, 3.5, 2, 3;
  const DistinctInputs found = distinct_inputs<double>(x);
  CHECK(found.of_row == std::vector<Index>{0, 1, 0, 2, 1});
  CHECK(found.rows == std::vector<Index>{0, 1, 3});
  CHECK(found.repeats() == 2);
  CHECK(found.text() == "2 of 5 rows repeat others: equal rows are left out together");
  CHECK(distinct_inputs<double>(rows_of(x, {0, 1})).text().empty());
  CHECK(distinct_inputs<double>(rows_of(x, {0, 1, 2})).text() ==
        "1 of 3 rows repeats others: equal rows are left out together");
  xt::xarray<double> sequences = xt::ones<double>({3, 2, 1});
  CHECK(distinct_inputs<double>(Inputs<double>(sequences)).size() == 1);
  const std::vector<Index> lengths{2, 1, 1};
  CHECK(distinct_inputs<double>(Inputs<double>(Inputs<double>(sequences), lengths)).of_row ==
        std::vector<Index>{0, 1, 1});
  // Numbers under a mask do not count.
  sequences(1, 1, 0) = 7;
  xt::xarray<bool> mask = xt::ones<bool>({3, 2});
  mask(0, 1) = mask(1, 1) = false;
  CHECK(distinct_inputs<double>(Inputs<double>(Inputs<double>(sequences), mask)).of_row ==
        std::vector<Index>{0, 0, 1});
  const xt::xarray<double> nodes = xt::ones<double>({3, 2, 1});
  const std::vector<GraphEdge> there{{0, 1, 1.0}}, back{{1, 0, 1.0}};
  CHECK(distinct_inputs<double>(
            Inputs<double>(Inputs<double>(nodes),
                           {InputGraph(2, there), InputGraph(2, back), InputGraph(2, there)}))
            .of_row == std::vector<Index>{0, 1, 0});
}

TEST_CASE("distinct inputs: groups of rows that share an input are one group") {
  Matrix<double> x(6, 1);
  x << 1, 2, 3, 4, 2, 5;
  const std::vector<Index> groups{7, 7, 8, 9, 8, 4};
  const DistinctInputs found = distinct_inputs<double>(x, groups);
  // Input 2 stands in the groups 7 and 8.
  CHECK(found.groups == std::vector<Index>{0, 0, 0, 1, 2});
  CHECK_THROWS_AS(static_cast<void>(distinct_inputs<double>(x, std::vector<Index>{1, 2})), ArgumentError);
}

TEST_CASE("sets that are left out together: the predictions are those of fits without them") {
  const KernelProblem p = make_problem(14, 1, 2, 3);
  const std::vector<Index> groups{0, 1, 0, 2, 3, 3, 4, 5, 6, 0, 7, 8, 9, 9};
  const LeftOutSets sets = all_sets(14, groups);
  const Noise noise = AbsoluteNoise(0.2);
  const LeaveOneOut one = Regression::fit(p.nngp, p.targets, noise).leave_one_out(sets),
                    converged = ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise).leave_one_out(sets),
                    factored =
                        ConvergedFlow::fit(p.nngp, p.ntk, p.targets, noise, 0, ConvergedFlow::Holds::factor)
                            .leave_one_out(sets),
                    flow = GradientFlow::fit(p.nngp, p.ntk, p.targets, noise).leave_one_out(sets);
  for (std::size_t k = 0; k < sets.inputs.size(); ++k) {
    const Index i = sets.inputs[k], row = static_cast<Index>(k);
    std::vector<Index> others;
    for (Index j = 0; j < 14; ++j)
      if (groups[static_cast<std::size_t>(j)] != groups[static_cast<std::size_t>(i)]) others.push_back(j);
    const std::vector<Index> self{i};
    const Matrix<double> cross = p.nngp(self, others), ntk_cross = p.ntk(self, others);
    const Vector<double> prior = Vector<double>::Constant(1, p.nngp(i, i));
    const Regression refit =
        Regression::fit(Matrix<double>(p.nngp(others, others)), p.targets(others, Eigen::all), noise);
    CHECK((p.targets.row(i) - refit.mean(cross) - one.residuals.row(row)).norm() < 1e-9);
    CHECK(one.variances(row) == Approx(refit.variance(cross, prior)(0) + 0.2).epsilon(1e-9));
    const GradientFlow flow_refit =
        GradientFlow::fit(Matrix<double>(p.nngp(others, others)), Matrix<double>(p.ntk(others, others)),
                          p.targets(others, Eigen::all), noise);
    const double variance = flow_refit.variance(infinite_time, cross, ntk_cross, prior)(0) + 0.2;
    for (const LeaveOneOut* each : {&converged, &factored, &flow}) {
      CHECK((p.targets.row(i) - flow_refit.mean(infinite_time, ntk_cross) - each->residuals.row(row)).norm() <
            1e-8);
      CHECK(each->variances(row) == Approx(variance).epsilon(1e-8));
    }
  }
  // The choice among regularisers scores the same predictions, from its band.
  const Selection chosen = select_regulariser(p.nngp, p.targets, std::nullopt, Criterion::leave_one_out,
                                              {0.1}, 1, {.groups = groups}),
                  trained = select_flow_regulariser(p.nngp, p.ntk, p.targets, std::nullopt,
                                                    Criterion::leave_one_out, {0.1}, 1, {.groups = groups});
  const LeaveOneOut direct =
      Regression::fit(p.nngp, p.targets, RelativeRegulariser(0.1)).with_amplitude(1).leave_one_out(sets);
  CHECK(chosen.others.residuals.isApprox(direct.residuals, 1e-9));
  CHECK(chosen.others.variances.isApprox(direct.variances, 1e-9));
  const LeaveOneOut of_flow =
      ConvergedFlow::fit(p.nngp, p.ntk, p.targets, RelativeRegulariser(0.1)).leave_one_out(sets);
  CHECK(trained.others.residuals.isApprox(of_flow.residuals, 1e-8));
  CHECK(trained.others.variances.isApprox(of_flow.variances, 1e-8));
  CHECK_THROWS_AS(static_cast<void>(all_sets(3, {1, 1, 1})), ArgumentError);
  std::vector<Index> pairs;
  for (Index i = 0; i < 2000; ++i) pairs.push_back(i / 2);
  const LeftOutSets some = representative_sets(2000, pairs);
  CHECK(some.inputs.size() == 1000);
  CHECK(some.ends.size() == 500);
}

TEST_CASE("repeated rows: every row twice with half its weight changes nothing") {
  const Matrix<double> x = random_matrix(40, 3, 1), test = random_matrix(6, 3, 2);
  Matrix<double> y(40, 1);
  for (Index i = 0; i < 40; ++i) y(i, 0) = std::sin(2 * x(i, 0)) + x(i, 1);
  y += 0.3 * random_matrix(40, 1, 3);
  const Vector<double> half = Vector<double>::Constant(80, 0.5);
  for (const Criterion criterion : {Criterion::leave_one_out, Criterion::evidence})
    check_same(Model::fit<double>(wide, x, y, {.criterion = criterion}),
               Model::fit<double>(wide, doubled(x), doubled(y), {.weights = half, .criterion = criterion}),
               test);
  const Matrix<double> classes = class_targets(x);
  check_same(
      Model::fit<double>(wide, x, classes, {.class_names = {"a", "b"}}),
      Model::fit<double>(wide, doubled(x), doubled(classes), {.weights = half, .class_names = {"a", "b"}}),
      test);
}

TEST_CASE("repeated rows: what is left out is predicted without the rows that are equal to it") {
  const Matrix<double> base = random_matrix(15, 3, 5);
  const std::vector<Index> rows{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0, 3, 3};
  const Matrix<double> x = rows_of(base, rows), y = random_matrix(18, 1, 6);
  for (const ModelKind kind : {ModelKind::bayesian, ModelKind::trained}) {
    const ModelOptions options{.kind = kind, .noise = AbsoluteNoise(0.3), .targets_as_they_are = true};
    const Model model = Model::fit<double>(wide, x, y, options);
    CHECK(model.train_size() == 18);
    CHECK(model.input_count() == 15);
    const ModelLeaveOneOut others = model.leave_one_out();
    REQUIRE(others.residuals.rows() == 18);
    for (const Index row : {0, 3, 15, 16, 17, 7}) {
      std::vector<Index> seen;
      for (Index i = 0; i < 18; ++i)
        if (rows[static_cast<std::size_t>(i)] != rows[static_cast<std::size_t>(row)]) seen.push_back(i);
      const Model refit = Model::fit<double>(wide, rows_of(x, seen), rows_of(y, seen), options);
      const ModelPrediction there = refit.predict(Inputs<double>(rows_of(x, {row})));
      CHECK(others.residuals(row, 0) == Approx(y(row, 0) - there.mean(0, 0)).epsilon(1e-7));
      CHECK(others.variances(row, 0) == Approx(there.variance(0, 0) + 0.3).epsilon(1e-7));
    }
    // All rows are learned from, as by a regression of all of them.
    if (kind == ModelKind::bayesian) {
      const Matrix<double> test = random_matrix(4, 3, 7);
      const Regression all = Regression::fit(gram<double>(wide, x).nngp, y, AbsoluteNoise(0.3));
      CHECK(relative_difference(model.mean(Inputs<double>(test)),
                                all.mean(gram<double>(wide, test, x).nngp)) < 1e-9);
    }
    const auto folder = std::filesystem::temp_directory_path() / "widelimit-repeated-rows-test";
    model.save(folder);
    const Model same = Model::load(folder);
    CHECK(same.train_size() == 18);
    const Matrix<double> new_inputs = random_matrix(4, 3, 8);
    CHECK(same.mean(Inputs<double>(new_inputs)) == model.predict(Inputs<double>(new_inputs)).mean);
    CHECK(same.leave_one_out().residuals == others.residuals);
    CHECK(same.leave_one_out().variances == others.variances);
    std::filesystem::remove_all(folder);
  }
}

TEST_CASE("repeated rows: copies do not make the choice trust single rows") {
  // Without groups the copies of rows are predicted from themselves, so that the least noise is the best.
  const Matrix<double> x = random_matrix(60, 3, 11);
  Matrix<double> y = random_matrix(60, 1, 12);
  y.col(0) += x.col(0);
  const Model plain = Model::fit<double>(wide, x, y),
              copied = Model::fit<double>(wide, doubled(x), doubled(y));
  CHECK(plain.regulariser()(0) > 0.05);
  CHECK(copied.regulariser()(0) > 0.05);
  // Twice the rows may take the next value of the grid.
  const Matrix<double> labels = class_targets(x + random_matrix(60, 3, 13));
  const ModelOptions classes{.class_names = {"a", "b"}};
  CHECK(Model::fit<double>(wide, doubled(x), doubled(labels), classes).regulariser()(0) >
        0.3 * Model::fit<double>(wide, x, labels, classes).regulariser()(0));
}

TEST_CASE("repeated rows: noise is not chosen below what rows of equal inputs scatter") {
  // A rough kernel tells roughness of a function from noise by these rows alone.
  const Network rough({layers::dense(), layers::matern(0.5, 1), layers::dense()});
  constexpr Index distinct = 40, repeated = 8;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    Matrix<double> x(distinct + repeated, 2);
    x.topRows(distinct) = random_matrix(distinct, 2, seed);
    x.bottomRows(repeated) = x.topRows(repeated);
    const Matrix<double> y = (4 * x.col(0).array()).sin() * (4 * x.col(1).array()).cos() +
                             0.3 * random_matrix(distinct + repeated, 1, seed + 100).array();
    const double scatter =
        (y.topRows(repeated) - y.bottomRows(repeated)).squaredNorm() / (2 * static_cast<double>(repeated));
    CHECK(Model::fit(rough, Inputs<double>(x), y).noise_variance()(0) > scatter / 4);
    // Copies scatter by nothing, and cost nothing.
    Matrix<double> copies = y;
    copies.bottomRows(repeated) = copies.topRows(repeated);
    const Model of_copies = Model::fit(rough, Inputs<double>(x), copies),
                alone = Model::fit(rough, Inputs<double>(Matrix<double>(x.topRows(distinct))),
                                   Matrix<double>(y.topRows(distinct)));
    CHECK(of_copies.noise_variance()(0) < 10 * alone.noise_variance()(0) + 1e-6);
  }
}

TEST_CASE("groups: rows of a group are left out together, and refused where nothing is left out") {
  const Matrix<double> x = random_matrix(20, 3, 21), y = random_matrix(20, 1, 22);
  std::vector<Index> groups;
  for (Index i = 0; i < 20; ++i) groups.push_back(i / 4);
  const ModelOptions options{.noise = AbsoluteNoise(0.2), .groups = groups, .targets_as_they_are = true};
  const Model model = Model::fit<double>(wide, x, y, options);
  std::vector<Index> seen;
  for (Index i = 4; i < 20; ++i) seen.push_back(i);
  const Model refit = Model::fit<double>(wide, rows_of(x, seen), rows_of(y, seen),
                                         {.noise = AbsoluteNoise(0.2), .targets_as_they_are = true});
  CHECK(model.leave_one_out().residuals(2, 0) ==
        Approx(y(2, 0) - refit.mean(Inputs<double>(rows_of(x, {2})))(0, 0)).epsilon(1e-8));
  CHECK_THROWS_AS(static_cast<void>(Model::fit<double>(wide, x, y, {.groups = {1, 2}})), ArgumentError);
  CHECK_THROWS_AS(
      static_cast<void>(Model::fit<double>(
          wide, x, y,
          {.noise = AbsoluteNoise(0.2), .groups = groups, .solver = Solver::conjugate_gradients})),
      ArgumentError);
  CHECK_THROWS_AS(static_cast<void>(Model::fit<double>(wide, x, y, {.groups = std::vector<Index>(20, 3)})),
                  ArgumentError);
}
