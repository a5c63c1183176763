#include "widelimit/specialization/lowest_curvature.hpp"

#include <doctest/doctest.h>

#include <Eigen/Eigenvalues>
#include <cmath>
#include <vector>

#include "support.hpp"
#include "widelimit/specialization/hessian.hpp"

using namespace widelimit;
using namespace widelimit::specialization;
using namespace widelimit::specialization::testing;
using Eigen::Index;

namespace {

/// m, b and v are moved, r is held: the Hessian of the loss itself by second differences, without its gradient.
double lowest_by_losses(HeadActivation activation, HeadParameters parameters,
                        const SampleSet<double>& samples) {
  std::vector<double*> entries;
  for (double& entry : parameters.m.reshaped<Eigen::RowMajor>()) entries.push_back(&entry);
  if (has_bias(activation))
    for (double& entry : parameters.b) entries.push_back(&entry);
  if (has_scale(activation))
    for (double& entry : parameters.v) entries.push_back(&entry);
  for (double& entry : parameters.r.reshaped<Eigen::RowMajor>()) entries.push_back(&entry);
  const auto loss = [&] { return sampled_loss(activation, parameters, samples, LossDetail::loss_only).loss; };
  constexpr double step = 1e-3;
  Eigen::MatrixXd hessian(entries.size(), entries.size());
  for (Index i = 0; i < hessian.rows(); ++i)
    for (Index j = 0; j < hessian.cols(); ++j) {
      double sum = 0;
      for (const double s : {1.0, -1.0})
        for (const double t : {1.0, -1.0}) {
          double &first = *entries[static_cast<std::size_t>(i)],
                 &second = *entries[static_cast<std::size_t>(j)];
          const double a = first, b = second;
          first += s * step;
          second += t * step;
          sum += s * t * loss();
          second = b;
          first = a;
        }
      hessian(i, j) = sum / (4 * step * step);
    }
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(hessian).eigenvalues()(0);
}

HeadParameters unspecialised(Index heads, double nu) {
  Matrix<double> m = Matrix<double>::Zero(heads, 2);
  m.col(0).setConstant(std::sqrt(nu));
  return with_initial_offsets(HeadActivation::softmax, m, Matrix<double>::Zero(heads, heads));
}

}  // namespace

TEST_CASE("lowest curvature: the Hessian of the loss, entry by entry, has the same") {
  numerics::RandomStream random(4);
  for (const HeadActivation activation : all_activations) {
    CAPTURE(head_activation_name(activation));
    const SampleSet<double> samples(random_values(40, 3, 2, 2, random));
    HeadParameters parameters = random_parameters(activation, 2, 2, random);
    // Rotations of r have nothing to turn here.
    parameters.r.setZero();
    const double expected = lowest_by_losses(activation, parameters, samples);
    const LowestCurvature found = lowest_curvature(activation, parameters, samples);
    CHECK(found.eigenvalue == doctest::Approx(expected).epsilon(1e-4));
    CHECK(found.eigenvalue < 0);
    CHECK(found.direction.m.squaredNorm() + found.direction.r.squaredNorm() +
              found.direction.b.squaredNorm() + found.direction.v.squaredNorm() ==
          doctest::Approx(1));
  }
}

TEST_CASE("lowest curvature: at the unspecialised saddle it is the rate at which heads split") {
  const Prior prior = Prior::flip2(2, 2);
  for (const HeadActivation activation : {HeadActivation::softmax, HeadActivation::bayes}) {
    CAPTURE(head_activation_name(activation));
    const auto samples =
        SampleSet<double>::draw(prior, {3, 2, 200'000}, 5, {.symmetry = SampleSymmetry::closed});
    HeadParameters saddle = unspecialised(2, 2);
    if (activation == HeadActivation::bayes)
      saddle.v = with_initial_offsets(activation, saddle.m, saddle.r).v;
    const LowestCurvature found = lowest_curvature(activation, saddle, samples);
    const double rate = split_rate_by_quadrature(activation, 3, 2, 2, 2).rate;
    CHECK(rate > 0.01);
    CHECK(-found.eigenvalue == doctest::Approx(rate).epsilon(0.03));
    // The heads part along the feature that flips.
    CHECK(std::abs(found.direction.m(0, 1)) == doctest::Approx(std::sqrt(0.5)).epsilon(1e-2));
    CHECK(found.direction.m(0, 1) == doctest::Approx(-found.direction.m(1, 1)).epsilon(1e-2));
    // Single precision finds the same.
    const auto single =
        SampleSet<float>::draw(prior, {3, 2, 200'000}, 5, {.symmetry = SampleSymmetry::closed});
    CHECK(std::abs(lowest_curvature(activation, saddle, single).eigenvalue - found.eigenvalue) < 2e-5);
  }
}

TEST_CASE("lowest curvature: rotations of r are left out, and symmetric variants stay symmetric") {
  numerics::RandomStream random(8);
  const SampleSet<double> samples(random_values(400, 3, 2, 3, random));
  const HeadParameters parameters = random_parameters(HeadActivation::softmax1, 3, 2, random);
  const Matrix<double> free = lowest_curvature(HeadActivation::softmax1, parameters, samples).direction.r;
  // r A with antisymmetric A is orthogonal to the direction: r^T d is symmetric.
  const Matrix<double> turned = parameters.r.transpose() * free;
  CHECK(distance(turned, turned.transpose()) < 1e-9);
  const Matrix<double> symmetric =
      lowest_curvature(HeadActivation::softmax1, parameters, samples, FlowVariant::symmetric).direction.r;
  CHECK(distance(symmetric, symmetric.transpose()) < 1e-12);
  CHECK(message_of([&] {
          HeadParameters wrong = parameters;
          wrong.m = Matrix<double>::Zero(3, 5);
          (void)lowest_curvature(HeadActivation::softmax1, wrong, samples);
        }) != "");
}
