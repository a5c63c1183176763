// What predictions must not notice: targets that are shifted or scaled, rows in another order, other names of classes.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "problem.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/gp/targets.hpp"
#include "widelimit/models/named_networks.hpp"

/// What must not change a decision, for random small problems: units of the targets, names and order of classes, order
/// of rows, other outputs beside one, a row that is there twice with twice the noise.
using namespace widelimit;
using namespace widelimit::gp;
using namespace widelimit::gp_test;

namespace {

constexpr int draws = 200;

struct Draw {
  Network network;
  Matrix<double> x, test, y;
  ModelOptions options;
};

Draw draw_of(std::uint64_t seed) {
  numerics::RandomStream stream(seed, 17);
  const auto up_to = [&](Index most) {
    return 1 + static_cast<Index>(stream.uniform() * static_cast<double>(most));
  };
  const Index n = 7 + up_to(12), outputs = up_to(3);
  const Matrix<double> x = random_matrix(n, 3, 3 * seed + 1);
  Matrix<double> y = 0.3 * random_matrix(n, outputs, 3 * seed + 2);
  for (Index c = 0; c < outputs; ++c)
    y.col(c) += (1.0 + static_cast<double>(c)) * (x.col(c).array()).sin().matrix();
  ModelOptions options;
  options.kind = stream.uniform() < 0.5 ? ModelKind::bayesian : ModelKind::trained;
  if (options.kind == ModelKind::trained && stream.uniform() < 0.5) options.time = 2;
  if (options.kind == ModelKind::bayesian && stream.uniform() < 0.5) options.criterion = Criterion::evidence;
  if (stream.uniform() < 0.3) options.noise = RelativeRegulariser(0.01);
  if (stream.uniform() < 0.3) options.amplitude = 1.7;
  options.gram.threads = 1;
  return {models::named_network("fcn", {{"axes", 0}, {"depth", 1}}), x, random_matrix(4, 3, 3 * seed + 3), y,
          options};
}

Model fitted(const Draw& draw) {
  return Model::fit(draw.network, Inputs<double>(draw.x), draw.y, draw.options);
}

ModelPrediction predicted(const Model& model, const Draw& draw) {
  return model.predict(Inputs<double>(draw.test), draw.options.gram);
}

/// Relative to the largest deviation.
void check_same(const Matrix<double>& actual, const Matrix<double>& expected, double scale) {
  CHECK((actual - expected).cwiseAbs().maxCoeff() <= 1e-8 * scale);
}

}  // namespace

TEST_CASE("invariance: predictions shift and scale with the targets") {
  for (int seed = 0; seed < draws; ++seed) {
    CAPTURE(seed);
    Draw draw = draw_of(static_cast<std::uint64_t>(seed));
    const Model model = fitted(draw);
    const ModelPrediction before = predicted(model, draw);
    const double factor = std::pow(10.0, seed % 7 - 3), shift = seed % 3 == 0 ? 1000 * factor : -3 * factor;
    draw.y = factor * draw.y.array() + shift;
    const Model moved = fitted(draw);
    const ModelPrediction after = predicted(moved, draw);
    check_same((after.mean.array() - shift) / factor, before.mean, 10);
    check_same(after.variance / (factor * factor), before.variance, 1);
    check_same(after.noise_variance / (factor * factor), before.noise_variance, 1);
    check_same(moved.amplitude(), model.amplitude(), model.amplitude().maxCoeff());
    if (draw.options.kind == ModelKind::bayesian)
      CHECK(moved.log_marginal_likelihood() ==
            doctest::Approx(model.log_marginal_likelihood() -
                            static_cast<double>(draw.y.size()) * std::log(factor))
                .epsilon(1e-7));
  }
}

TEST_CASE("invariance: an output is predicted as if it were alone, whatever stands beside it") {
  for (int seed = 0; seed < draws; ++seed) {
    CAPTURE(seed);
    Draw draw = draw_of(static_cast<std::uint64_t>(seed));
    draw.y.col(draw.y.cols() - 1) *= 500;
    const ModelPrediction together = predicted(fitted(draw), draw);
    const Matrix<double> all = draw.y;
    for (Index c = 0; c < all.cols(); ++c) {
      draw.y = all.col(c);
      const ModelPrediction alone = predicted(fitted(draw), draw);
      const double scale = std::max(1.0, all.col(c).cwiseAbs().maxCoeff());
      check_same(together.mean.col(c), alone.mean, scale);
      check_same(together.variance.col(c), alone.variance, scale * scale);
      CHECK(together.noise_variance(c) == doctest::Approx(alone.noise_variance(0)).epsilon(1e-7));
    }
  }
}

TEST_CASE("invariance: rows in another order") {
  for (int seed = 0; seed < draws; ++seed) {
    CAPTURE(seed);
    Draw draw = draw_of(static_cast<std::uint64_t>(seed));
    const ModelPrediction before = predicted(fitted(draw), draw);
    draw.x = Matrix<double>(draw.x.colwise().reverse());
    draw.y = Matrix<double>(draw.y.colwise().reverse());
    const ModelPrediction after = predicted(fitted(draw), draw);
    check_same(after.mean, before.mean, 10);
    check_same(after.variance, before.variance, 10);
  }
}

TEST_CASE("invariance: labels with gaps, negative ones and other names are the same classes") {
  for (int seed = 0; seed < draws; ++seed) {
    CAPTURE(seed);
    Draw draw = draw_of(static_cast<std::uint64_t>(seed));
    if (draw.options.kind == ModelKind::trained) draw.options.time = infinite_time;
    const int classes = 2 + seed % 3;
    std::vector<int> labels, gaps, mirrored;
    for (Index i = 0; i < draw.x.rows(); ++i) {
      labels.push_back(static_cast<int>(i) < classes
                           ? static_cast<int>(i)
                           : (draw.x(i, 0) > 0 ? 0 : static_cast<int>(i) % classes));
      gaps.push_back(5 * labels.back() - 3);
      mirrored.push_back(-labels.back());
    }
    const auto fit = [&](const std::vector<int>& each) {
      return Model::fit(draw.network, Inputs<double>(draw.x), each, draw.options);
    };
    const Model first = fit(labels), second = fit(gaps), reversed = fit(mirrored);
    CHECK(first.outputs() == (classes == 2 ? 1 : classes));
    CHECK(second.class_names().size() == static_cast<std::size_t>(classes));
    CHECK(second.class_names().front() == "-3");
    const Matrix<double> expected = predicted(first, draw).class_probabilities;
    check_same(predicted(second, draw).class_probabilities, expected, 1);
    check_same(predicted(reversed, draw).class_probabilities.rowwise().reverse(), expected, 1);
  }
}

TEST_CASE("invariance: every row twice with twice the noise is every row once") {
  for (int seed = 0; seed < draws; ++seed) {
    CAPTURE(seed);
    Draw draw = draw_of(static_cast<std::uint64_t>(seed));
    draw.options.kind = ModelKind::bayesian;
    draw.options.time = infinite_time;
    draw.options.amplitude = {};
    draw.options.noise = AbsoluteNoise(0.05);
    const ModelPrediction once = predicted(fitted(draw), draw);
    Matrix<double> x(2 * draw.x.rows(), draw.x.cols()), y(2 * draw.y.rows(), draw.y.cols());
    x << draw.x, draw.x;
    y << draw.y, draw.y;
    draw.x = x;
    draw.y = y;
    draw.options.noise = AbsoluteNoise(0.1);
    const ModelPrediction twice = predicted(fitted(draw), draw);
    check_same(twice.mean, once.mean, 10);
    check_same(twice.variance, once.variance, 10);
  }
}
