#pragma once

#include <optional>
#include <vector>

#include "widelimit/specialization/loss.hpp"

namespace widelimit::specialization {

/// max over pairs of heads of |m_h - m_h'|.
[[nodiscard]] double max_split(const Matrix<double>& m);

/// Per feature, the length of m_{:f} minus its mean over the heads (F).
[[nodiscard]] Vector<double> feature_splits(const Matrix<double>& m);

/// First time at which max_split exceeds delta (strictly; the paper uses 0.2), or nothing. `tau` and `m` run
/// in step. ArgumentError for lists of different lengths and delta < 0.
[[nodiscard]] std::optional<double> specialisation_time(const std::vector<double>& tau,
                                                        const std::vector<Matrix<double>>& m,
                                                        double delta = 0.2);

/// First time at which feature_splits of one feature exceeds delta (the paper uses 1 for digits), or nothing.
[[nodiscard]] std::optional<double> feature_specialisation_time(const std::vector<double>& tau,
                                                                const std::vector<Matrix<double>>& m,
                                                                Index feature, double delta = 1);

/// sigma / H (H x L) of one sequence with chi_star (L x F) and xi (L x H); its columns sum to the weights a
/// of the tokens. Errors as head_activation.
[[nodiscard]] Matrix<double> attention_map(HeadActivation activation, const HeadParameters& parameters,
                                           const Matrix<double>& chi_star, const Matrix<double>& xi);

/// Mean weight a of the relevant token and mean total weight of the others. attention_mass() throws ArgumentError for
/// parameters that do not fit the samples; it takes a forward pass in double a sample.
struct AttentionMass {
  double relevant = 0;
  double other = 0;
};
template <typename Scalar>
[[nodiscard]] AttentionMass attention_mass(HeadActivation activation, const HeadParameters& parameters,
                                           const SampleSet<Scalar>& samples, const RunControl& run = {});

/// How sigma is normalised after heads were removed from a bayes model: among the kept heads, or as in the
/// full model (then averaged over the kept heads). Makes no difference for the other activations.
enum class PruneNormaliser { kept_heads, full_model };

/// The removals of greedy_prune(), and the losses after them.
struct PruneResult {
  std::vector<double> losses;  ///< After 0, 1, ..., H - 1 removals.
  std::vector<Index> removed;  ///< Heads in the order of removal, in original numbers; H - 1 of them.
};

/// Removes heads one by one, each time the one whose removal gives the smallest loss (the lowest number in a
/// tie). Errors as sampled_loss; cost H^2 / 2 loss evaluations.
template <typename Scalar>
[[nodiscard]] PruneResult greedy_prune(HeadActivation activation, const HeadParameters& parameters,
                                       const SampleSet<Scalar>& samples,
                                       PruneNormaliser normaliser = PruneNormaliser::kept_heads,
                                       const RunControl& run = {});

}  // namespace widelimit::specialization
