#include "widelimit/gp/score_gradient.hpp"

#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/kernel/gram_gradient.hpp"

namespace widelimit::gp {

template <typename Scalar>
std::vector<double> score_gradient(const Network& network, const Inputs<Scalar>& x, const Matrix<double>& y,
                                   const Noise& noise, Criterion criterion,
                                   const std::vector<std::string>& numbers, const RunControl& run) {
  if (criterion != Criterion::evidence && criterion != Criterion::leave_one_out)
    throw ArgumentError("score_gradient: only evidence and leave_one_out have derivatives here");
  KernelCotangents<Scalar> cotangents;
  // Kernels and factor are freed before the backward pass takes its memory.
  {
    GramResult<Scalar> kernels =
        gram(network, x, {.kernels = Kernels::nngp, .threads = run.threads, .stop = run.stop});
    const Regression::ScoreCotangents scores =
        Regression::fit(std::move(kernels.nngp), y, noise, run.threads).score_cotangents();
    cotangents.nngp =
        (criterion == Criterion::evidence ? scores.log_marginal_likelihood : scores.leave_one_out_density)
            .template cast<Scalar>();
  }
  return gram_number_vjp(network, x, cotangents, numbers, run);
}

template std::vector<double> score_gradient(const Network&, const Inputs<float>&, const Matrix<double>&,
                                            const Noise&, Criterion, const std::vector<std::string>&,
                                            const RunControl&);
template std::vector<double> score_gradient(const Network&, const Inputs<double>&, const Matrix<double>&,
                                            const Noise&, Criterion, const std::vector<std::string>&,
                                            const RunControl&);

}  // namespace widelimit::gp
