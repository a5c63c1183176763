#include "widelimit/propagation/attention_map.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "propagation/arguments.hpp"
#include "propagation/chebyshev.hpp"

namespace widelimit::propagation {

namespace {

constexpr Index most_direct = 16;  // different cosines
constexpr int fewest_nodes = 16, most_nodes = 1024;
constexpr double settled = 1e-12;
constexpr double rounding = 1e-10;

void require_cosines(const char* where, const Matrix<double>& cosines) {
  const Index n = cosines.rows();
  if (n < 1 || cosines.cols() != n)
    throw ArgumentError(
        fmt::format("{}: cosines must be square, got {} x {}", where, cosines.rows(), cosines.cols()));
  if (!cosines.allFinite() || !cosines.isApprox(cosines.transpose(), rounding) ||
      (cosines.diagonal().array() - 1).abs().maxCoeff() > rounding ||
      cosines.cwiseAbs().maxCoeff() > 1 + rounding)
    throw ArgumentError(fmt::format(
        "{}: cosines must be a symmetric matrix of numbers in [-1, 1] with unit diagonal", where));
}

/// For one value t of the cosine of two queries: sum_kl c_kl e^{s t c_kl} / sum_kl e^{s t c_kl}, s =
/// sigma_A^2, over all k, l.
double full_mean(const Matrix<double>& cosines, double score_variance, double t) {
  // Exponents are taken relative to the largest one: relative to another, weights would overflow or all
  // vanish where scores are sharp.
  const double shift = score_variance * t * (t > 0 ? cosines.maxCoeff() : cosines.minCoeff());
  double numerator = 0, denominator = 0;
  for (Index k = 0; k < cosines.size(); ++k) {
    const double c = cosines.data()[k];
    const double weight = std::exp(score_variance * t * c - shift);
    numerator += weight * c;
    denominator += weight;
  }
  return numerator / denominator;
}

/// Sums of weights and of what they weigh, in units of e^exponent, the largest weight.
struct ScaledSums {
  double exponent, numerator, denominator;

  void add(const ScaledSums& other) {
    const double top = std::max(exponent, other.exponent);
    const double own = std::exp(exponent - top), its = std::exp(other.exponent - top);
    *this = {top, own * numerator + its * other.numerator, own * denominator + its * other.denominator};
  }
};

/// causal_means() for scores so sharp that one scale for all sums would leave some of them nothing.
Matrix<double> sharp_causal_means(const Matrix<double>& cosines, double score_variance, double t) {
  Matrix<double> means(cosines.rows(), cosines.cols());
  std::vector<ScaledSums> above;
  for (Index i = 0; i < cosines.rows(); ++i) {
    std::vector<ScaledSums> sums;
    for (Index j = 0; j < cosines.cols(); ++j) {
      sums.push_back({score_variance * t * cosines(i, j), cosines(i, j), 1});
      // Row i first gets its sums over l <= j; with those of the rows above they become sums over k <= i as well.
      if (j > 0) sums.back().add(sums[static_cast<std::size_t>(j) - 1]);
    }
    for (std::size_t j = 0; j < sums.size(); ++j) {
      if (i > 0) sums[j].add(above[j]);
      means(i, static_cast<Index>(j)) = sums[j].numerator / sums[j].denominator;
    }
    above = std::move(sums);
  }
  return means;
}

/// [i, j]: full_mean() with sums over k <= i and l <= j only.
Matrix<double> causal_means(const Matrix<double>& cosines, double score_variance, double t) {
  constexpr double most_exponent = 600;  // smaller weights would be no normal numbers
  if (2 * score_variance * std::abs(t) > most_exponent) return sharp_causal_means(cosines, score_variance, t);
  const double shift = score_variance * std::abs(t);
  const Matrix<double> weights = (score_variance * t * cosines.array() - shift).exp();
  Matrix<double> numerator = weights.cwiseProduct(cosines), denominator = weights;
  for (Matrix<double>* sums : {&numerator, &denominator}) {
    // Running sums along both axes are the sums over all k <= i, l <= j.
    for (Index i = 1; i < sums->rows(); ++i) sums->row(i) += sums->row(i - 1);
    for (Index j = 1; j < sums->cols(); ++j) sums->col(j) += sums->col(j - 1);
  }
  return numerator.cwiseQuotient(denominator);
}

/// Attention outputs as they would be if all queries had the cosine t.
Matrix<double> means_at(const Matrix<double>& cosines, double score_variance, AttentionMask mask, double t) {
  if (mask == AttentionMask::causal) return causal_means(cosines, score_variance, t);
  return Matrix<double>::Constant(cosines.rows(), cosines.cols(), full_mean(cosines, score_variance, t));
}

Matrix<double> interpolated(const Matrix<double>& cosines, double score_variance, AttentionMask mask,
                            int degree) {
  Matrix<double> numerator = Matrix<double>::Zero(cosines.rows(), cosines.cols()), norm = numerator;
  Matrix<double> exact = Matrix<double>::Constant(cosines.rows(), cosines.cols(), std::nan(""));
  for (int j = 0; j <= degree; ++j) {
    const double at = chebyshev_point(j, degree);
    const Matrix<double> means = means_at(cosines, score_variance, mask, at);
    const double weight = barycentric_weight(j, degree);
    for (Index k = 0; k < cosines.size(); ++k) {
      const double difference = cosines.data()[k] - at;
      // The barycentric formula is 0 / 0 at a node, where the value itself is known.
      if (difference == 0) {
        exact.data()[k] = means.data()[k];
      } else {
        numerator.data()[k] += weight / difference * means.data()[k];
        norm.data()[k] += weight / difference;
      }
    }
  }
  return exact.array().isNaN().select(numerator.cwiseQuotient(norm), exact);
}

/// The two triangles differ by rounding where sums over earlier tokens run in different orders.
Matrix<double> symmetric(const Matrix<double>& matrix) { return 0.5 * (matrix + matrix.transpose()); }

std::vector<double> different_values(const Matrix<double>& cosines) {
  std::vector<double> values(cosines.data(), cosines.data() + cosines.size());
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/// One evaluation for each different cosine, which serves all entries that have it.
Matrix<double> direct(const Matrix<double>& cosines, double score_variance, AttentionMask mask,
                      const std::vector<double>& values) {
  Matrix<double> result(cosines.rows(), cosines.cols());
  for (const double value : values)
    result = (cosines.array() == value).select(means_at(cosines, score_variance, mask, value), result);
  return result;
}

}  // namespace

double largest_annealed_gap(double tokens, double sigma_A) {
  require_at_least("largest_annealed_gap", "tokens", tokens, 2);
  require_not_negative("largest_annealed_gap", "sigma_A", sigma_A);
  return std::log(tokens) / (2 * sigma_A * sigma_A);
}

/// (10) and (11) of arXiv:2403.02579; the gap is e [phi(c) - phi(1)].
TokenState attention_core(double tokens, double sigma_A, double cosine_gap) {
  require_at_least("attention_core", "tokens", tokens, 2);
  require_not_negative("attention_core", "sigma_A", sigma_A);
  const double score_variance = sigma_A * sigma_A, e = cosine_gap;
  // phi(t) = w / (1 + w), w = (n - 1) exp(-s t e): the weight of the other tokens. 1 / w does not overflow where scores
  // are so sharp that w does.
  const double equal = (tokens - 1) * std::exp(-score_variance * e);
  const double one_over_different = std::exp(score_variance * e * (1 - e)) / (tokens - 1);
  // One quotient gives phi(c) - phi(1), without cancellation however close both are.
  const double rise = -std::expm1(-score_variance * e * e);  // 1 - equal / different
  return {1 - e * equal / (1 + equal), e * rise / ((1 + equal) * (1 + one_over_different))};
}

double softmax_second_moment(const Matrix<double>& cosines, double sigma_A, Index query_i, Index key_j,
                             Index query_k, Index key_l) {
  constexpr const char* where = "softmax_second_moment";
  require_cosines(where, cosines);
  require_not_negative(where, "sigma_A", sigma_A);
  require_index(where, "query_i", query_i, cosines.rows());
  require_index(where, "key_j", key_j, cosines.rows());
  require_index(where, "query_k", query_k, cosines.rows());
  require_index(where, "key_l", key_l, cosines.rows());
  // (9), with the exponential of the numerator divided out.
  const double scale = sigma_A * sigma_A * cosines(query_i, query_k);
  double sum = 0;
  for (Index k = 0; k < cosines.size(); ++k)
    sum += std::exp(scale * (cosines.data()[k] - cosines(key_j, key_l)));
  return 1 / sum;
}

Matrix<double> attention_outputs(const Matrix<double>& cosines, double sigma_A, AttentionMask mask) {
  constexpr const char* where = "attention_outputs";
  require_cosines(where, cosines);
  require_not_negative(where, "sigma_A", sigma_A);
  const double score_variance = sigma_A * sigma_A;
  const std::vector<double> values = different_values(cosines);
  if (static_cast<Index>(values.size()) <= most_direct)
    return symmetric(direct(cosines, score_variance, mask, values));
  // The output is a smooth function of the query's cosine, so that a few Chebyshev nodes serve all entries. Every other
  // node of a doubled degree is new, and their number is doubled until nothing changes any more.
  Matrix<double> coarse = interpolated(cosines, score_variance, mask, fewest_nodes);
  for (int degree = 2 * fewest_nodes; degree <= most_nodes; degree *= 2) {
    Matrix<double> fine = interpolated(cosines, score_variance, mask, degree);
    if ((fine - coarse).cwiseAbs().maxCoeff() <= settled) return symmetric(fine);
    coarse = std::move(fine);
  }
  throw NumericalError(
      fmt::format("{}: interpolation in {} nodes does not settle at sigma_A = {}; take a smaller sigma_A",
                  where, most_nodes, sigma_A));
}

}  // namespace widelimit::propagation
