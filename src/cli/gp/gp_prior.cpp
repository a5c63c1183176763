#include "cli/gp/gp_prior.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <xtensor/xview.hpp>

#include "cli/gp/gp_kernel.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::cli {
namespace {

constexpr std::size_t line_places = 49, single_places = 24;
constexpr Index prior_samples = 5;

/// The first test input whose targets are not those of input 0, else the last one.
template <typename Scalar>
std::size_t other_end(const GpSet<Scalar>& test) {
  const auto last = static_cast<Index>(test.x.shape(0)) - 1;
  if (test.targets)
    for (Index i = 1; i <= last; ++i)
      if (test.targets->row(i) != test.targets->row(0)) return static_cast<std::size_t>(i);
  return static_cast<std::size_t>(last);
}

/// Inputs on the line, [places, spatial..., channels].
template <typename Scalar>
GpSet<Scalar> line_between(const xt::xarray<Scalar>& x, std::size_t first, std::size_t second,
                           const std::vector<double>& places) {
  std::vector<std::size_t> shape(x.shape().begin(), x.shape().end());
  const std::size_t size = x.size() / shape[0];
  shape[0] = places.size();
  GpSet<Scalar> set;
  set.x = xt::xarray<Scalar>::from_shape(shape);
  for (std::size_t p = 0; p < places.size(); ++p)
    for (std::size_t k = 0; k < size; ++k)
      set.x.data()[p * size + k] = static_cast<Scalar>((1 - places[p]) * x.data()[first * size + k] +
                                                       places[p] * x.data()[second * size + k]);
  return set;
}

/// Of a set with masks, which has no lines between inputs.
template <typename Scalar>
GpSet<Scalar> first_inputs(const GpSet<Scalar>& all, std::size_t count, std::vector<double>& places) {
  GpSet<Scalar> set;
  set.x = xt::view(all.x, xt::range(0, count));
  set.mask = xt::view(*all.mask, xt::range(0, count));
  for (std::size_t i = 0; i < count; ++i) places.push_back(static_cast<double>(i));
  return set;
}

/// Columns are samples of N(0, covariance).
Matrix<double> normal_samples(const Matrix<double>& covariance) {
  const Eigen::SelfAdjointEigenSolver<Matrix<double>> eigen(covariance);
  Matrix<double> normals(covariance.rows(), prior_samples);
  for (Index k = 0; k < prior_samples; ++k) {
    numerics::RandomStream random(0, static_cast<std::uint64_t>(k));
    for (Index i = 0; i < normals.rows(); ++i) normals(i, k) = random.normal();
  }
  // Rounding leaves eigenvalues slightly below 0.
  return eigen.eigenvectors() * eigen.eigenvalues().cwiseMax(0).cwiseSqrt().asDiagonal() * normals;
}

}  // namespace

template <typename Scalar>
GpPrior sample_prior(const Network& network, const GpTask<Scalar>& task, const GpOptions& options,
                     double amplitude, const Interrupt& interrupt) {
  GpPrior prior;
  GpSet<Scalar> set;
  if (task.test.mask) {
    set = first_inputs(task.test, std::min(single_places, task.test.size()), prior.places);
  } else if (task.test.sequences.empty()) {
    prior.second = other_end(task.test);
    for (std::size_t i = 0; i < line_places; ++i)
      prior.places.push_back(static_cast<double>(i) / static_cast<double>(line_places - 1));
    set = line_between(task.test.x, prior.first, *prior.second, prior.places);
  } else {
    const std::size_t count = std::min(single_places, task.test.sequences.size());
    for (std::size_t i = 0; i < count; ++i) {
      prior.places.push_back(static_cast<double>(i));
      set.sequences.push_back(task.test.sequences[i]);
      if (!task.test.graphs.empty()) set.graphs.push_back(task.test.graphs[i]);
    }
  }
  GramOptions gram_options;
  gram_options.kernels = Kernels::nngp;
  gram_options.threads = options.inference.fit.threads;
  gram_options.device = options.device;
  gram_options.exact_attention = options.exact_attention;
  gram_options.stop = interrupt.token();
  GpKernel<Scalar> kernel(network, task, options.flip, gram_options);
  const Matrix<double> covariance =
      amplitude * kernel.gram(set.inputs(), nullptr, gram_options).nngp.template cast<double>();
  prior.functions = normal_samples(covariance);
  prior.deviation = covariance.diagonal().cwiseSqrt();
  return prior;
}

template GpPrior sample_prior(const Network&, const GpTask<float>&, const GpOptions&, double,
                              const Interrupt&);
template GpPrior sample_prior(const Network&, const GpTask<double>&, const GpOptions&, double,
                              const Interrupt&);

}  // namespace widelimit::cli
