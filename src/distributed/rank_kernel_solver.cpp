#include "distributed/rank_kernel_solver.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "distributed/rank_gram.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/not_positive_definite.hpp"
#include "widelimit/gp/selection.hpp"

namespace widelimit::distributed {
namespace {

constexpr const char* prior_kernel = "nngp";
constexpr const char* where = "gp";

/// Predictions for representative training targets from all others, with the amplitude 1.
gp::LeaveOneOut others_of(const RankRegression& fitted, const std::string& kernel,
                          const gp::GramSources& grams, Index inputs) {
  const std::vector<Index> seen = gp::representative_inputs(inputs);
  if (kernel == prior_kernel) return fitted.leave_one_out(seen);
  return fitted.flow_leave_one_out(*grams.train->as_operator(prior_kernel), seen);
}

class RankPosterior final : public gp::UnitPosterior {
 public:
  RankPosterior(std::string kernel, std::unique_ptr<RankRegression> fitted, Matrix<double> targets,
                const gp::GramSources& grams)
      : kernel_{std::move(kernel)}, fitted_{std::move(fitted)}, targets_{std::move(targets)}, grams_{grams} {}

  [[nodiscard]] Matrix<double> mean() const override { return fitted_->mean(grams_.test->as_cross(kernel_)); }

  [[nodiscard]] Vector<double> variance() const override {
    const gp::CrossGram cross = grams_.test->as_cross(kernel_);
    if (kernel_ == prior_kernel) return fitted_->variance(cross, grams_.test_variances);
    return fitted_->flow_variance(*grams_.train->as_operator(prior_kernel),
                                  grams_.test->as_cross(prior_kernel), cross, grams_.test_variances);
  }

  [[nodiscard]] double lambda() const override { return fitted_->noise_variance(); }

  [[nodiscard]] Vector<double> amplitudes(bool apart) const override {
    if (kernel_ == prior_kernel) {
      const Vector<double> forms = quadratic_forms();
      if (apart) return forms / static_cast<double>(targets_.rows());
      return Vector<double>::Constant(forms.size(), targets_.cwiseProduct(fitted_->weights()).sum() /
                                                        static_cast<double>(targets_.size()));
    }
    if (apart) return others().most_likely_scales(where);
    return Vector<double>::Constant(targets_.cols(), others().most_likely_scale(where));
  }

  [[nodiscard]] std::optional<gp::LeaveOneOut> leave_one_out() const override { return others(); }

  [[nodiscard]] std::optional<double> log_marginal_likelihood(
      const Vector<double>& amplitudes) const override {
    if (kernel_ != prior_kernel) return std::nullopt;
    return gp::log_evidence(quadratic_forms(), fitted_->log_determinant(), targets_.rows(), amplitudes);
  }

 private:
  [[nodiscard]] Vector<double> quadratic_forms() const {
    return targets_.cwiseProduct(fitted_->weights()).colwise().sum().transpose();
  }

  /// Computed once.
  [[nodiscard]] const gp::LeaveOneOut& others() const {
    if (!others_) others_ = others_of(*fitted_, kernel_, grams_, targets_.rows());
    return *others_;
  }

  std::string kernel_;
  std::unique_ptr<RankRegression> fitted_;
  Matrix<double> targets_;
  const gp::GramSources& grams_;
  mutable std::optional<gp::LeaveOneOut> others_;
};

class RankKernelSolver final : public gp::KernelSolver {
 public:
  RankKernelSolver(const RankSolver& ranks, std::string kernel, gp::GramSources& grams,
                   const gp::SolverTargets& targets, const gp::SolverOptions& options)
      : ranks_{ranks},
        kernel_{std::move(kernel)},
        grams_{grams},
        train_{dynamic_cast<const RankGram&>(*grams.train)},
        targets_{targets},
        options_{options} {
    if (!targets_.left_out.groups.empty())
      throw ArgumentError(
          fmt::format("{}: ranks leave inputs out one by one, and know no groups: leave them out, or take "
                      "the solver cholesky",
                      where));
  }

  /// A factorization for each candidate; those that break down are left out. What the first rank chooses counts:
  /// another kind of processor could differ.
  [[nodiscard]] std::vector<gp::Selection> select() override {
    const auto gram = train_.as_operator(kernel_);
    const double mean_diagonal = gram->diagonal().mean();
    auto selections = gp::select_by_scores(
        *gram, options_.candidates, options_.criterion, [&](const std::vector<double>& lambdas) {
          const auto sets = targets_.apart ? static_cast<std::size_t>(targets_.train.cols()) : 1;
          std::vector<std::vector<gp::RegulariserScore>> scores(sets);
          for (const double lambda : lambdas) {
            const auto of_value = scores_or_reason(lambda / mean_diagonal, sets);
            for (std::size_t c = 0; c < sets; ++c) scores[c].push_back(of_value[c]);
          }
          return scores;
        });
    for (gp::Selection& selection : selections) {
      double best = selection.best.value();
      ranks_.share(&best, 1, 0);
      selection.best = gp::RelativeRegulariser(best);
    }
    return selections;
  }

  [[nodiscard]] gp::GramAccuracy accuracy() const override {
    return gp::gram_accuracy(*train_.as_operator(kernel_));
  }

  [[nodiscard]] std::vector<std::unique_ptr<gp::UnitPosterior>> fit(const std::vector<Index>& outputs,
                                                                    double regulariser, bool last) override {
    static_cast<void>(last);
    std::vector<std::unique_ptr<gp::UnitPosterior>> posteriors;
    posteriors.push_back(posterior(targets_.train_of(outputs), regulariser));
    return posteriors;
  }

 private:
  [[nodiscard]] std::unique_ptr<RankPosterior> posterior(Matrix<double> targets, double regulariser) const {
    if (options_.stop.stop_requested()) throw Cancelled("gp: stopped");
    auto fitted = factorized(targets, regulariser);
    return std::make_unique<RankPosterior>(kernel_, std::move(fitted), std::move(targets), grams_);
  }

  /// ScaLAPACK tells where it broke down, and not what would do.
  [[nodiscard]] std::unique_ptr<RankRegression> factorized(const Matrix<double>& targets,
                                                           double regulariser) const {
    try {
      return ranks_.factorize(train_.tiles(kernel_), targets, gp::RelativeRegulariser(regulariser));
    } catch (const gp::NotPositiveDefinite& failure) {
      const gp::GramAccuracy gram = accuracy();
      const double enough = gram.sufficient_regulariser();
      throw gp::NotPositiveDefinite(fmt::format("{}; the smallest eigenvalue without noise is about {:.6g}; "
                                                "a relative regulariser of {:.6g} is "
                                                "enough",
                                                failure.what(), gram.smallest_eigenvalue, enough),
                                    gram.smallest_eigenvalue, enough, failure.leading_minor());
    }
  }

  [[nodiscard]] std::vector<gp::RegulariserScore> scores_or_reason(double regulariser,
                                                                   std::size_t sets) const {
    try {
      return scores_of(regulariser);
    } catch (const gp::NotPositiveDefinite& failure) {
      std::vector<gp::RegulariserScore> scores(sets, gp::no_scores());
      for (gp::RegulariserScore& score : scores) score.unsolved = failure.what();
      return scores;
    }
  }

  /// Of all outputs together, or of each.
  [[nodiscard]] std::vector<gp::RegulariserScore> scores_of(double regulariser) const {
    const Index outputs = targets_.train.cols();
    const auto fitted = factorized(targets_.train, regulariser);
    const Vector<double> forms = targets_.train.cwiseProduct(fitted->weights()).colwise().sum().transpose();
    std::vector<gp::RegulariserScore> scores;
    if (gp::needs_validation(options_.criterion))
      scores = gp::validation_scores(fitted->mean(grams_.validation->as_cross(kernel_)), targets_.validation,
                                     targets_.apart);
    else
      scores.assign(targets_.apart ? static_cast<std::size_t>(outputs) : 1, gp::no_scores());
    if (options_.criterion == gp::Criterion::leave_one_out) add_densities(*fitted, forms, scores);
    if (kernel_ != prior_kernel) return scores;
    const Index n = targets_.train.rows();
    for (std::size_t c = 0; c < scores.size(); ++c) {
      const Index count = targets_.apart ? 1 : outputs;
      const double form = targets_.apart ? forms(static_cast<Index>(c)) : forms.sum();
      scores[c].log_marginal_likelihood =
          gp::log_evidence(form, fitted->log_determinant(), n, count, form / static_cast<double>(n * count));
    }
    return scores;
  }

  /// Densities of the targets left out, under the amplitude that the kernel's posterior would take.
  void add_densities(const RankRegression& fitted, const Vector<double>& forms,
                     std::vector<gp::RegulariserScore>& scores) const {
    const Index n = targets_.train.rows();
    const gp::LeaveOneOut others = others_of(fitted, kernel_, grams_, n);
    for (std::size_t c = 0; c < scores.size(); ++c) {
      gp::LeaveOneOut own = others;
      if (targets_.apart) own.residuals = others.residuals.col(static_cast<Index>(c));
      const double form = targets_.apart ? forms(static_cast<Index>(c)) : forms.sum();
      const double amplitude = kernel_ == prior_kernel
                                   ? form / static_cast<double>(n * (targets_.apart ? 1 : forms.size()))
                                   : own.most_likely_scale(where);
      // Targets that are all 0 have no finite density.
      if (amplitude == 0) continue;
      if (const auto& score = targets_.left_out.score) {
        scores[c].leave_one_out = score(own, amplitude, fitted.noise_variance(), static_cast<Index>(c));
        continue;
      }
      own.variances *= amplitude;
      scores[c].leave_one_out = own.negative_log_predictive_density();
    }
  }

  const RankSolver& ranks_;
  std::string kernel_;
  gp::GramSources& grams_;
  const RankGram& train_;
  const gp::SolverTargets& targets_;
  const gp::SolverOptions& options_;
};

}  // namespace

std::unique_ptr<gp::KernelSolver> rank_kernel_solver(const RankSolver& ranks, const std::string& kernel,
                                                     gp::GramSources& grams, const gp::SolverTargets& targets,
                                                     const gp::SolverOptions& options) {
  return std::make_unique<RankKernelSolver>(ranks, kernel, grams, targets, options);
}

}  // namespace widelimit::distributed
