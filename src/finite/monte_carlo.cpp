#include "widelimit/finite/monte_carlo.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <vector>

#include "finite/passes.hpp"
#include "layers/finite/seeds.hpp"
#include "widelimit/error.hpp"

namespace widelimit::finite {
namespace {

struct Draw {
  Matrix<double> nngp;
  Matrix<double> ntk;
};

template <typename Scalar>
struct Batches {
  const Inputs<Scalar>& x1;
  const Inputs<Scalar>* x2;  ///< Null: all pairs of x1.
};

void check(const MonteCarloOptions& options, const KernelMoments& so_far, Index rows, Index columns) {
  if (options.draws < 1)
    throw ArgumentError(fmt::format("monte_carlo_kernel: draws must be at least 1, got {}", options.draws));
  if (options.first_draw < 0)
    throw ArgumentError(
        fmt::format("monte_carlo_kernel: first_draw must not be negative, got {}", options.first_draw));
  if (so_far.draws > 0 && (so_far.mean.rows() != rows || so_far.mean.cols() != columns))
    throw ArgumentError(
        fmt::format("monte_carlo_kernel: expected kernels of [{}, {}] to continue from, got [{}, {}]", rows,
                    columns, so_far.mean.rows(), so_far.mean.cols()));
}

template <typename Scalar>
Draw drawn(const Network& network, const Batches<Scalar>& batches, const MonteCarloOptions& options,
           Index number) {
  const Form form{batches.x1.shape(0), batches.x1.channels()};
  // Draws have seeds by their numbers, whatever number a series begins with, and run side by side on one thread each.
  const FiniteNetwork<Scalar> sample(network, form, options.widths, options.heads,
                                     mixed_seed(options.seed, static_cast<std::uint64_t>(number)), 1,
                                     options.stop);
  NtkOptions ntk = options.ntk;
  ntk.stop = options.stop;
  const auto& [x1, x2] = batches;
  Draw draw;
  draw.nngp = (x2 != nullptr ? empirical_nngp(sample, x1, *x2, options.stop)
                             : empirical_nngp(sample, x1, options.stop))
                  .template cast<double>();
  if (options.kernels == MonteCarloOptions::Kernels::both)
    draw.ntk = (x2 != nullptr ? empirical_ntk(sample, x1, *x2, ntk) : empirical_ntk(sample, x1, ntk))
                   .template cast<double>();
  return draw;
}

template <typename Scalar>
MonteCarloKernel sampled(const Network& network, const Batches<Scalar>& batches,
                         const MonteCarloOptions& options, MonteCarloKernel result) {
  check(options, result.nngp, batches.x1.size(),
        batches.x2 != nullptr ? batches.x2->size() : batches.x1.size());
  const int threads = numerics::resolve_threads(options.threads, "monte_carlo_kernel");
  // Some draws a thread before they are added up in their order: threads seldom wait for each other, and what
  // is kept are kernels, not networks.
  const Index wave = 8 * static_cast<Index>(threads);
  for (Index begin = 0; begin < options.draws; begin += wave) {
    std::vector<Draw> draws(static_cast<std::size_t>(std::min(wave, options.draws - begin)));
    parallel(static_cast<Index>(draws.size()), threads, [&](Index k) {
      draws[static_cast<std::size_t>(k)] = drawn(network, batches, options, options.first_draw + begin + k);
    });
    for (std::size_t k = 0; k < draws.size(); ++k) {
      result.nngp.add(draws[k].nngp);
      if (draws[k].ntk.size() > 0) result.ntk.add(draws[k].ntk);
      if (options.on_draw)
        options.on_draw(options.first_draw + begin + static_cast<Index>(k), draws[k].nngp, draws[k].ntk);
    }
  }
  return result;
}

}  // namespace

void KernelMoments::add(const Matrix<double>& draw) {
  if (draws == 0) {
    mean = Matrix<double>::Zero(draw.rows(), draw.cols());
    squares = mean;
  }
  ++draws;
  // Welford's update does not subtract large sums.
  const Matrix<double> before = draw - mean;
  mean += before / static_cast<double>(draws);
  squares += before.cwiseProduct(draw - mean);
}

Matrix<double> KernelMoments::standard_error() const {
  if (draws < 2)
    return Matrix<double>::Constant(mean.rows(), mean.cols(), std::numeric_limits<double>::quiet_NaN());
  const auto count = static_cast<double>(draws);
  // The variance of a draw is squares / (count - 1), that of their mean is lower by the factor count.
  return (squares / (count * (count - 1))).cwiseSqrt();
}

template <typename Scalar>
MonteCarloKernel monte_carlo_kernel(const Network& network, const Inputs<Scalar>& x1,
                                    const Inputs<Scalar>& x2, const MonteCarloOptions& options,
                                    MonteCarloKernel so_far) {
  return sampled<Scalar>(network, {x1, &x2}, options, std::move(so_far));
}

template <typename Scalar>
MonteCarloKernel monte_carlo_kernel(const Network& network, const Inputs<Scalar>& x,
                                    const MonteCarloOptions& options, MonteCarloKernel so_far) {
  return sampled<Scalar>(network, {x, nullptr}, options, std::move(so_far));
}

template MonteCarloKernel monte_carlo_kernel(const Network&, const Inputs<float>&, const Inputs<float>&,
                                             const MonteCarloOptions&, MonteCarloKernel);
template MonteCarloKernel monte_carlo_kernel(const Network&, const Inputs<double>&, const Inputs<double>&,
                                             const MonteCarloOptions&, MonteCarloKernel);
template MonteCarloKernel monte_carlo_kernel(const Network&, const Inputs<float>&, const MonteCarloOptions&,
                                             MonteCarloKernel);
template MonteCarloKernel monte_carlo_kernel(const Network&, const Inputs<double>&, const MonteCarloOptions&,
                                             MonteCarloKernel);

}  // namespace widelimit::finite
