#include "widelimit/gp/automatic.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "gp/problem.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/model.hpp"

using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;
using doctest::Approx;

namespace {

/// Targets of the last but one column alone, which has heavy tails, and of the first.
Problem numbers_of(const Matrix<double>& x) {
  const Matrix<double> noise = random_matrix(x.rows(), 1, 9);
  Problem problem;
  problem.targets = Matrix<double>(x.rows(), 1);
  for (Index i = 0; i < x.rows(); ++i)
    problem.targets(i, 0) = std::sin(2 * x(i, 0)) + std::cbrt(x(i, 1)) + 0.1 * noise(i, 0);
  return problem;
}

Matrix<double> table(Index rows) {
  Matrix<double> x = random_matrix(rows, 3, 4);
  x.col(1) = x.col(1).array().cube();
  return x;
}

const AutomaticTrial& best_of(const AutomaticNetwork& found) { return found.trials[found.chosen]; }

void check_same(const AutomaticNetwork& found, const AutomaticNetwork& other, double tolerance) {
  CHECK(found.chosen == other.chosen);
  REQUIRE(found.trials.size() == other.trials.size());
  for (std::size_t i = 0; i < found.trials.size(); ++i)
    CHECK(found.trials[i].score == Approx(other.trials[i].score).epsilon(tolerance));
}

}  // namespace

TEST_CASE("automatic: the lowest score is chosen, and a straight line gets a linear kernel") {
  const Matrix<double> x = table(60);
  const AutomaticNetwork found = choose_network(Inputs<double>(x), numbers_of(x));
  CHECK(found.trials.size() == 18);
  CHECK(found.rows == 60);
  for (const AutomaticTrial& trial : found.trials) CHECK(!(trial.score < best_of(found).score));
  CHECK(best_of(found).inputs == "normal scores");

  const Matrix<double> plain = random_matrix(60, 3, 5);
  Problem line;
  line.targets = plain * random_matrix(3, 1, 6) + 0.1 * random_matrix(60, 1, 7);
  const AutomaticNetwork straight = choose_network(Inputs<double>(plain), line);
  // Ranks bend a line.
  CHECK(best_of(straight).inputs == "clipped");
  CHECK(straight.trials.front().network == "linear");
  CHECK(straight.trials.front().score < best_of(straight).score + 0.05);
  CHECK(automatic_text(straight, TargetKind::numbers)
            .starts_with("network auto: " + best_of(straight).network + " on inputs clipped ("));
}

TEST_CASE("automatic: what does not change a problem does not change the choice") {
  const Matrix<double> x = table(50);
  const Problem problem = numbers_of(x);
  const AutomaticNetwork found = choose_network(Inputs<double>(x), problem);
  check_same(choose_network(Inputs<double>(Matrix<double>(1e7 * x)), problem), found, 1e-6);
  check_same(choose_network(Inputs<double>(Matrix<double>(1e-7 * x)), problem), found, 1e-6);
  const Matrix<double> columns = x(Eigen::all, std::vector<Index>{2, 0, 1});
  check_same(choose_network(Inputs<double>(columns), problem), found, 1e-6);
  std::vector<Index> order(50);
  std::iota(order.rbegin(), order.rend(), Index{0});
  Problem reversed;
  reversed.targets = problem.targets(order, Eigen::all);
  check_same(choose_network(Inputs<double>(Matrix<double>(x(order, Eigen::all))), reversed), found, 1e-6);
  check_same(choose_network(Inputs<double>(x), problem, {}, {.threads = 1}),
             choose_network(Inputs<double>(x), problem, {}, {.threads = 2}), 1e-9);
  const Matrix<float> rounded = x.cast<float>();
  check_same(choose_network(Inputs<float>(rounded), problem),
             choose_network(Inputs<double>(Matrix<double>(rounded.cast<double>())), problem), 1e-12);
  // All rows twice, each of half the weight.
  Matrix<double> doubled(100, 3);
  doubled << x, x;
  Problem halves;
  halves.targets = Matrix<double>(100, 1);
  halves.targets << problem.targets, problem.targets;
  halves.weights = Vector<double>::Constant(100, 0.5);
  check_same(choose_network(Inputs<double>(doubled), halves), found, 5e-3);
  // Densities are those of the targets' units.
  Problem scaled = problem;
  scaled.targets = 1000 * problem.targets.array() + 7;
  const AutomaticNetwork of_scaled = choose_network(Inputs<double>(x), scaled);
  CHECK(of_scaled.chosen == found.chosen);
  CHECK(best_of(of_scaled).score == Approx(best_of(found).score + std::log(1000.0)).epsilon(1e-6));
}

TEST_CASE("automatic: classes by any names, and known noise as weights") {
  const Matrix<double> x = table(60);
  const Matrix<double> y = numbers_of(x).targets;
  std::vector<int> labels, renamed;
  for (Index i = 0; i < 60; ++i) {
    labels.push_back(y(i, 0) > 0 ? 1 : 0);
    renamed.push_back(1 - labels.back());
  }
  Problem problem{.kind = TargetKind::classes, .targets = class_scores(labels, 2)},
      other{.kind = TargetKind::classes, .targets = class_scores(renamed, 2)};
  const AutomaticNetwork found = choose_network(Inputs<double>(x), problem);
  check_same(choose_network(Inputs<double>(x), other), found, 1e-6);
  CHECK(best_of(found).score < 0.6);

  Problem noisy = numbers_of(x), weighted = noisy;
  noisy.noise_variances = Vector<double>::LinSpaced(60, 0.1, 0.3);
  weighted.weights = noisy.noise_variances.mean() * noisy.noise_variances.cwiseInverse();
  check_same(choose_network(Inputs<double>(x), noisy), choose_network(Inputs<double>(x), weighted), 1e-9);
}

TEST_CASE("automatic: where nothing can be chosen it says why, and images are refused") {
  const Matrix<double> x = random_matrix(3, 2, 1);
  Problem problem;
  problem.targets = random_matrix(3, 1, 2);
  const AutomaticNetwork few = choose_network(Inputs<double>(x), problem);
  CHECK(best_of(few).unsolved == "there are fewer than 30 targets to leave out");
  CHECK(automatic_text(few, TargetKind::numbers).find("as nothing can be chosen") != std::string::npos);
  problem.targets = random_matrix(36, 1, 2);
  const AutomaticNetwork equal =
      choose_network(Inputs<double>(Matrix<double>(Matrix<double>::Ones(36, 2))), problem);
  CHECK(best_of(equal).unsolved == "no two inputs differ");
  problem.targets.setConstant(2);
  const Matrix<double> many = random_matrix(36, 2, 3);
  CHECK(best_of(choose_network(Inputs<double>(many), problem)).unsolved == "all targets are equal");
  const std::vector<Matrix<double>> sequences{random_matrix(2, 3, 1), random_matrix(3, 3, 2)};
  CHECK_THROWS_WITH_AS(static_cast<void>(choose_network(Inputs<double>(sequences), problem)),
                       "choose_network: expected vectors [n, channels]; give a network", ArgumentError);
  problem.targets = random_matrix(35, 1, 2);
  CHECK_THROWS_AS(static_cast<void>(choose_network(Inputs<double>(many), problem)), ArgumentError);
  CHECK(automatic_cost(2000).find("on 600 training rows") != std::string::npos);
  CHECK(automatic_cost(200).find("on all 200 training rows") != std::string::npos);
}

TEST_CASE("automatic: a model keeps the functions of its inputs, and its tails, in its folder") {
  const Matrix<double> x = table(60), test = 3 * table(20);
  const Problem problem = numbers_of(x);
  const AutomaticNetwork found = choose_network(Inputs<double>(x), problem);
  const Model model =
      Model::fit<double>(found.network, x, problem.targets, {.input_map = found.map, .fits_tails = true});
  const Model by_hand =
      Model::fit<double>(found.network, found.map.apply(Inputs<double>(x)), problem.targets);
  CHECK(model.predict(Inputs<double>(test)).mean ==
        by_hand.predict(found.map.apply(Inputs<double>(test))).mean);
  CHECK(by_hand.law() == ObservationLaw::of_fitted_amplitude(60, true));
  CHECK(!(model.law() == by_hand.law()));
  const auto folder = std::filesystem::temp_directory_path() / "widelimit-automatic-test";
  std::filesystem::remove_all(folder);
  model.save(folder);
  const Model same = Model::load(folder);
  CHECK(same.predict(Inputs<double>(test)).mean == model.predict(Inputs<double>(test)).mean);
  CHECK(same.law() == model.law());
  CHECK(same.feature_map().knots() == found.map.knots());
  std::filesystem::remove_all(folder);
}
