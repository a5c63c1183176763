#include "widelimit/kernel/gram.hpp"

#include "kernel/run/gram_run.hpp"

namespace widelimit {

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  check_finite(x, "x", options.threads);
  auto result = run_gram<Scalar>(network, symmetric_task(network, x), options,
                                 [&](auto& computation, const auto& target, const auto&, std::int64_t) {
                                   computation.symmetric(x, target);
                                 });
  fill_variances(network, x, options);
  return result;
}

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                        const GramOptions& options) {
  check_finite(x1, "x1", options.threads);
  check_finite(x2, "x2", options.threads);
  check_alike(x1, x2);
  auto result = run_gram<Scalar>(network, rectangular_task(network, x1, x2), options,
                                 [&](auto& computation, const auto& target, const auto&, std::int64_t) {
                                   computation.rectangular(x1, x2, target);
                                 });
  fill_variances(network, x1, x2, options);
  return result;
}

template <typename Scalar>
GramResult<Scalar> gram_diagonal(const Network& network, const Inputs<Scalar>& x,
                                 const GramOptions& options) {
  check_finite(x, "x", options.threads);
  return run_gram<Scalar>(network, diagonal_task(network, x), options,
                          [&](auto& computation, const auto& target, const auto&, std::int64_t) {
                            computation.diagonal(x, target);
                          });
}

template GramResult<float> gram(const Network&, const Inputs<float>&, const GramOptions&);
template GramResult<double> gram(const Network&, const Inputs<double>&, const GramOptions&);
template GramResult<float> gram(const Network&, const Inputs<float>&, const Inputs<float>&,
                                const GramOptions&);
template GramResult<double> gram(const Network&, const Inputs<double>&, const Inputs<double>&,
                                 const GramOptions&);
template GramResult<float> gram_diagonal(const Network&, const Inputs<float>&, const GramOptions&);
template GramResult<double> gram_diagonal(const Network&, const Inputs<double>&, const GramOptions&);

}  // namespace widelimit
