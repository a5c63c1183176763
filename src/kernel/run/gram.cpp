#include "widelimit/kernel/gram.hpp"

#include "kernel/run/gram_run.hpp"

namespace widelimit {

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x, const GramOptions& options) {
  check_finite(x, "x", options.threads);
  const GramTask task = symmetric_task(x);
  return run_gram<Scalar>(network, task, options,
                          [&](auto& computation, const auto& target, const auto&, std::int64_t) {
                            computation.symmetric(x, target);
                          });
}

template <typename Scalar>
GramResult<Scalar> gram(const Network& network, const Inputs<Scalar>& x1, const Inputs<Scalar>& x2,
                        const GramOptions& options) {
  check_finite(x1, "x1", options.threads);
  check_finite(x2, "x2", options.threads);
  check_alike(x1, x2);
  const GramTask task = rectangular_task(x1, x2);
  return run_gram<Scalar>(network, task, options,
                          [&](auto& computation, const auto& target, const auto&, std::int64_t) {
                            computation.rectangular(x1, x2, target);
                          });
}

template <typename Scalar>
GramResult<Scalar> gram_diagonal(const Network& network, const Inputs<Scalar>& x,
                                 const GramOptions& options) {
  check_finite(x, "x", options.threads);
  const GramTask task{shapes_of(x, "x"), x.channels(), x.size(), 1, x.size()};
  return run_gram<Scalar>(network, task, options,
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
