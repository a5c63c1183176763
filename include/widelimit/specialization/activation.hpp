#pragma once

#include <string_view>

#include "widelimit/matrix.hpp"

/// Specialisation of attention heads in the single-location model.
///
/// A sequence has L tokens in D dimensions, one of which (index eps) carries a signal and is also the label. H heads
/// score the tokens, chi[h][l] = k_h . X_l; the prediction is sum_l a_l X_l with a_l = (1/H) sum_h sigma[h][l]. All
/// indices count from 0 and losses carry the factor 1/D: 1 for a = 0, 1 - 1/L for uniform attention.
///
/// Source  Sagitova, Duranthon, Zdeborova, arXiv:2603.03993v2.
namespace widelimit::specialization {

using Eigen::Index;

/// How the scores of a sequence become the heads' weights sigma (H x L):
///   softmax    exp(chi[h][l]) / sum_l exp(chi[h][l])
///   softmaxv   v[h] times softmax
///   softmax1   v exp(chi[h][l]) / (exp(b[h]) + sum_l exp(chi[h][l])): a head may attend to nothing
///   bayes      H exp(chi[h][l] + b[h]) / sum_{h, l} exp(chi[h][l] + b[h]): heads compete with each other
enum class HeadActivation { softmax, softmaxv, softmax1, bayes };

/// "softmax", "softmaxv", "softmax1" or "bayes"; ArgumentError for any other name.
[[nodiscard]] HeadActivation head_activation_from_name(std::string_view name);
[[nodiscard]] std::string_view head_activation_name(HeadActivation activation);

/// Number of trained scales v: H for softmaxv, 1 otherwise (softmax and bayes have none and ignore the one).
[[nodiscard]] Index scale_count(HeadActivation activation, Index heads);

/// Whether the loss depends on b (softmax1, bayes) and on v (softmax1, softmaxv).
[[nodiscard]] bool has_bias(HeadActivation activation);
[[nodiscard]] bool has_scale(HeadActivation activation);

/// ArgumentError("WHERE: ...") unless b has one entry a head and v scale_count() of them, all finite.
void require_offsets(std::string_view where, HeadActivation activation, Index heads, const Vector<double>& b,
                     const Vector<double>& v);

/// sigma (H x L) for scores chi (H x L), biases b (H) and scales v (scale_count).
///
/// Edges    scores of any finite size: maxima are subtracted before exponentiating.
/// Errors   ArgumentError for H < 1 or L < 1, sizes that do not match and non-finite values, naming the field.
[[nodiscard]] Matrix<double> head_activation(HeadActivation activation, const Matrix<double>& chi,
                                             const Vector<double>& b, const Vector<double>& v);

/// a (L): the mean of sigma over the heads.
[[nodiscard]] Vector<double> aggregate(const Matrix<double>& sigma);

/// Derivatives of sigma. Row h * L + l stands for sigma[h][l].
struct ActivationJacobians {
  Matrix<double> chi;  ///< HL x HL; column h * L + l stands for chi[h][l].
  Matrix<double> b;    ///< HL x H.
  Matrix<double> v;    ///< HL x scale_count; zero where the activation has no scale.
};

/// Arguments and errors as head_activation.
[[nodiscard]] ActivationJacobians head_activation_jacobians(HeadActivation activation,
                                                            const Matrix<double>& chi,
                                                            const Vector<double>& b, const Vector<double>& v);

/// Loss of one sequence in the limit D -> infinity, sum_l (delta_{l, eps} - a_l)^2, and its derivatives.
struct TokenLoss {
  double loss = 0;
  Vector<double> aggregate;     ///< L.
  Matrix<double> chi_gradient;  ///< H x L.
  Vector<double> b_gradient;    ///< H.
  Vector<double> v_gradient;    ///< scale_count.
};

/// Errors   as head_activation; ArgumentError unless 0 <= eps < L.
[[nodiscard]] TokenLoss token_loss(HeadActivation activation, const Matrix<double>& chi,
                                   const Vector<double>& b, const Vector<double>& v, Index eps);

}  // namespace widelimit::specialization
