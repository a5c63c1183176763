#pragma once

#include <cstdint>

#include "widelimit/specialization/activation.hpp"
#include "widelimit/specialization/samples.hpp"

namespace widelimit::specialization {

/// State of the heads in order parameters. In the limit D -> infinity the scores are distributed as
///     chi[h][l] = sum_f m[h][f] chi*[f][l] + sum_h' r[h][h'] xi[h'][l].
struct HeadParameters {
  Matrix<double> m;  ///< H x F: overlaps of the heads with the spikes.
  Matrix<double> r;  ///< H x H: a root of S = r r^T, the Gram matrix of the parts orthogonal to the spikes.
  Vector<double> b;  ///< H.
  Vector<double> v;  ///< scale_count(activation, H).
};

/// b = 0 and v = 1, the start of training, for given m and r.
[[nodiscard]] HeadParameters with_initial_offsets(HeadActivation activation, Matrix<double> m,
                                                  Matrix<double> r);

/// Throws ArgumentError("WHERE: ...") unless these are H heads over F features, all numbers finite: m H x F, r H x H, b
/// one entry a head and v scale_count(). What the activation does not have must have no value either: b is 0, v is 1.
void require_heads(std::string_view where, HeadActivation activation, const HeadParameters& parameters,
                   Index heads, Index features);

/// A start away from SGD: m ~ N(0, 1e-4) entry by entry, r = eta I plus symmetric noise of variance 1e-4 (standard
/// deviation 0.01, the size of m at D = 10^4), b = 0, v = 1. ArgumentError for H or F < 1 and eta < 0.
[[nodiscard]] HeadParameters noise_start(HeadActivation activation, Index heads, Index features, double eta,
                                         std::uint64_t seed);

/// Options of sampled_loss for results besides the loss.
enum class LossDetail { loss_only, gradients, gradients_and_noise };

/// A population loss and the other results that were asked for.
struct SampledLoss {
  double loss = 0;
  double standard_error = 0;  ///< sqrt((mean l^2 - (mean l)^2) / n), n = (sum w)^2 / sum w^2 with weights.
  HeadParameters gradient;    ///< Plain derivatives, entry by entry; empty if not asked for.
  Matrix<double> noise;       ///< C (H x H): mean over samples of sum_l G_l G_l^T; empty if not asked for.
};

/// Population loss E sum_l (delta_{l, eps} - a_l)^2 over a fixed set of samples, and its gradients.
///
/// Accuracy  float: about 1e-7 relative; double: rounding.
/// Threads   sums are made per block of 1024 samples and then in order, so the result has the
///           same bits for any number of threads. Progress is not reported.
/// Errors    ArgumentError where m, r, b or v does not fit the samples (m: H x F, r: H x noises) or is not finite.
/// Cost      2 n L H (F + H) multiply-adds twice and n L H exponentials.
/// Source    arXiv:2603.03993, (9).
template <typename Scalar>
[[nodiscard]] SampledLoss sampled_loss(HeadActivation activation, const HeadParameters& parameters,
                                       const SampleSet<Scalar>& samples,
                                       LossDetail detail = LossDetail::gradients, const RunControl& run = {});

}  // namespace widelimit::specialization
