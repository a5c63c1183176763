#include "widelimit/specialization/lowest_curvature.hpp"

#include <Eigen/Eigenvalues>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "specialization/moving_parts.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::specialization {

namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

HeadNumbers numbers_of(const VectorXd& vector) { return {vector.data(), vector.data() + vector.size()}; }

VectorXd vector_of(const HeadParameters& parameters) {
  const HeadNumbers numbers = packed(parameters);
  return Eigen::Map<const VectorXd>(numbers.data(), static_cast<Index>(numbers.size()));
}

/// Directions r A with antisymmetric A, along which S = r r^T does not change, as orthonormal columns in the
/// coordinates of packed().
MatrixXd rotations(const HeadParameters& parameters) {
  const Index heads = parameters.r.rows();
  std::vector<VectorXd> directions;
  HeadParameters direction = parameters;
  for_each_part([](auto& part) { part.setZero(); }, direction);
  for (Index i = 0; i < parameters.r.cols(); ++i)
    for (Index j = 0; j < i; ++j) {
      direction.r = Matrix<double>::Zero(heads, parameters.r.cols());
      // r A for the A with A_ij = 1, A_ji = -1: column j takes that of i, column i minus that of j.
      direction.r.col(j) = parameters.r.col(i);
      direction.r.col(i) = -parameters.r.col(j);
      directions.push_back(vector_of(direction));
    }
  MatrixXd all(vector_of(parameters).size(), static_cast<Index>(directions.size()));
  for (Index k = 0; k < all.cols(); ++k) all.col(k) = directions[static_cast<std::size_t>(k)];
  if (all.cols() == 0) return all;
  // The directions are dependent if r is singular, so that only as many columns as the rank are kept.
  const Eigen::ColPivHouseholderQR<MatrixXd> factors(all);
  return factors.householderQ() * MatrixXd::Identity(all.rows(), factors.rank());
}

/// The Hessian of a loss at one point, on the directions that a flow moves in.
template <typename Scalar>
class HessianProduct {
 public:
  HessianProduct(HeadActivation activation, const HeadParameters& parameters,
                 const SampleSet<Scalar>& samples, FlowVariant variant, const RunControl& run)
      : activation_(activation), parameters_(parameters), samples_(samples), variant_(variant), run_(run) {
    if (variant == FlowVariant::frame) left_out_ = rotations(parameters);
  }

  [[nodiscard]] Index size() const { return vector_of(parameters_).size(); }

  /// The part of a direction that moves.
  [[nodiscard]] VectorXd moving(const VectorXd& direction) const {
    HeadParameters parts = unpacked(numbers_of(direction), parameters_);
    keep_what_moves(activation_, variant_, parts);
    VectorXd result = vector_of(parts);
    // Along a rotation the loss is constant; a gradient that is not 0 would give it a curvature that says nothing.
    if (left_out_.cols() > 0) result -= left_out_ * (left_out_.transpose() * result);
    return result;
  }

  /// H d for a d of length 1, by the central difference of gradients.
  [[nodiscard]] VectorXd operator()(const VectorXd& direction) const {
    // Balances the rounding of the gradients against the third derivatives that the difference leaves.
    constexpr double step = std::is_same_v<Scalar, float> ? 4e-3 : 1e-4;
    return moving(gradient_at(step, direction) - gradient_at(-step, direction)) / (2 * step);
  }

 private:
  [[nodiscard]] VectorXd gradient_at(double step, const VectorXd& direction) const {
    HeadParameters moved = parameters_;
    add_scaled(moved, step, unpacked(numbers_of(direction), parameters_));
    return vector_of(sampled_loss(activation_, moved, samples_, LossDetail::gradients, run_).gradient);
  }

  HeadActivation activation_;
  const HeadParameters& parameters_;
  const SampleSet<Scalar>& samples_;
  FlowVariant variant_;
  const RunControl& run_;
  MatrixXd left_out_;
};

/// -H.
template <typename Scalar>
struct NegatedProduct {
  const HessianProduct<Scalar>& product;

  [[nodiscard]] Index size() const { return product.size(); }
  [[nodiscard]] VectorXd moving(const VectorXd& direction) const { return product.moving(direction); }
  [[nodiscard]] VectorXd operator()(const VectorXd& direction) const { return -product(direction); }
};

/// Lowest eigenvalue of a symmetric operator and its eigenvector, by
/// Lanczos iterations whose basis is kept orthogonal.
template <typename Operator>
std::pair<double, VectorXd> lowest_eigenpair(const Operator& apply) {
  constexpr Index most_steps = 200;
  constexpr double relative_residual = 1e-3, least_residual = 1e-7;
  // The start is random but always the same, so that results repeat.
  numerics::RandomStream stream(0);
  VectorXd next(apply.size());
  for (double& entry : next) entry = stream.normal();
  next = apply.moving(next).normalized();
  MatrixXd basis(apply.size(), 0);
  std::vector<double> diagonal, beside;
  while (true) {
    const Index step = basis.cols();
    basis.conservativeResize(Eigen::NoChange, step + 1);
    basis.col(step) = next;
    next = apply(basis.col(step));
    const VectorXd parts = basis.transpose() * next;
    diagonal.push_back(parts(step));
    // The second projection takes away what rounding has left of the first.
    next -= basis * parts;
    next -= basis * (basis.transpose() * next).eval();
    const double length = next.norm();
    Eigen::SelfAdjointEigenSolver<MatrixXd> ritz;
    ritz.computeFromTridiagonal(Eigen::Map<const VectorXd>(diagonal.data(), step + 1),
                                Eigen::Map<const VectorXd>(beside.data(), step));
    const double lowest = ritz.eigenvalues()(0);
    // The residual of a Ritz pair is the last coefficient times the length of what is left.
    const double residual = std::abs(length * ritz.eigenvectors()(step, 0));
    if (residual <= std::max(relative_residual * std::abs(lowest), least_residual) ||
        step + 1 == std::min(apply.size(), most_steps))
      return {lowest, basis * ritz.eigenvectors().col(0)};
    beside.push_back(length);
    next /= length;
  }
}

}  // namespace

template <typename Scalar>
LowestCurvature lowest_curvature(HeadActivation activation, const HeadParameters& parameters,
                                 const SampleSet<Scalar>& samples, FlowVariant variant,
                                 const RunControl& run) {
  const auto [eigenvalue, direction] =
      lowest_eigenpair(HessianProduct<Scalar>(activation, parameters, samples, variant, run));
  return {eigenvalue, unpacked(numbers_of(direction), parameters)};
}

template <typename Scalar>
double highest_curvature(HeadActivation activation, const HeadParameters& parameters,
                         const SampleSet<Scalar>& samples, FlowVariant variant, const RunControl& run) {
  const HessianProduct<Scalar> product(activation, parameters, samples, variant, run);
  return -lowest_eigenpair(NegatedProduct<Scalar>{product}).first;
}

template double highest_curvature(HeadActivation, const HeadParameters&, const SampleSet<float>&, FlowVariant,
                                  const RunControl&);
template double highest_curvature(HeadActivation, const HeadParameters&, const SampleSet<double>&,
                                  FlowVariant, const RunControl&);
template LowestCurvature lowest_curvature(HeadActivation, const HeadParameters&, const SampleSet<float>&,
                                          FlowVariant, const RunControl&);
template LowestCurvature lowest_curvature(HeadActivation, const HeadParameters&, const SampleSet<double>&,
                                          FlowVariant, const RunControl&);

}  // namespace widelimit::specialization
