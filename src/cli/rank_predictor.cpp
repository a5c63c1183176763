#include "cli/rank_predictor.hpp"

#include <chrono>
#include <limits>
#include <utility>

#include "cli/rank_gram.hpp"
#include "gp/solvers/rounding_error.hpp"
#include "widelimit/gp/gradient_flow.hpp"

namespace widelimit::cli {
namespace {

constexpr const char* prior_kernel = "nngp";
constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

class RankPredictor {
 public:
  RankPredictor(const GpTargets& targets, const GpOptions& options, const Interrupt& interrupt, GpGrams grams)
      : targets_{targets},
        options_{options},
        interrupt_{interrupt},
        ranks_{*options.dealer->solver()},
        grams_{std::move(grams)},
        train_{dynamic_cast<const RankGram&>(*grams_.train)} {}

  std::vector<GpPrediction> run() {
    if (options_.kernels != Kernels::ntk) predict(prior_kernel);
    if (options_.kernels != Kernels::nngp) predict("ntk");
    return std::move(predictions_);
  }

 private:
  [[nodiscard]] gp::Criterion criterion() const { return criterion_of(options_, targets_.kind); }

  [[nodiscard]] std::unique_ptr<RankRegression> fit(const std::string& kernel, double regulariser) const {
    interrupt_.check();
    auto regression =
        ranks_.factorize(train_.tiles(kernel), targets_.train, gp::RelativeRegulariser(regulariser));
    if (options_.amplitude) regression->set_amplitude(*options_.amplitude);
    return regression;
  }

  [[nodiscard]] gp::RegulariserScore score(const std::string& kernel, double regulariser) const {
    const auto regression = fit(kernel, regulariser);
    gp::RegulariserScore score{not_known, false, not_known, not_known, not_known, not_known, not_known};
    if (gp::needs_validation(criterion()))
      score =
          gp::validation_score(regression->mean(grams_.validation->as_cross(kernel)), *targets_.validation);
    if (kernel == prior_kernel) score.log_marginal_likelihood = regression->log_marginal_likelihood();
    return score;
  }

  /// A factorization for each candidate. What the first rank chooses counts: another kind of processor could differ.
  [[nodiscard]] ChosenRegulariser regulariser(const std::string& kernel) const {
    const auto gram = train_.as_operator(kernel);
    if (options_.regulariser) {
      ChosenRegulariser given(*options_.regulariser);
      given.noise_floor = gp::noise_floor(*gram);
      return given;
    }
    const double mean_diagonal = gram->diagonal().mean();
    ChosenRegulariser chosen(gp::select_by_scores(*gram, options_.candidates, criterion(),
                                                  [&](const std::vector<double>& lambdas) {
                                                    std::vector<gp::RegulariserScore> scores;
                                                    for (const double lambda : lambdas)
                                                      scores.push_back(score(kernel, lambda / mean_diagonal));
                                                    return scores;
                                                  }));
    ranks_.share(&chosen.value, 1, 0);
    return chosen;
  }

  void predict(const std::string& kernel) {
    const auto start = std::chrono::steady_clock::now();
    const ChosenRegulariser chosen = regulariser(kernel);
    const auto regression = fit(kernel, chosen.value);
    if (kernel != prior_kernel && !options_.amplitude) {
      interrupt_.check();
      regression->set_amplitude(regression->flow_leave_one_out_amplitude(*train_.as_operator(prior_kernel)));
    }
    const gp::CrossGram cross = grams_.test->as_cross(kernel);
    Posterior posterior{.name = kernel,
                        .amplitude = regression->amplitude(),
                        .noise_variance = regression->noise_variance(),
                        .mean = regression->mean(cross),
                        .variance = {}};
    if (kernel != prior_kernel) {
      posterior.time = gp::infinite_time;
      posterior.variance =
          regression->flow_variance(*train_.as_operator(prior_kernel), grams_.test->as_cross(prior_kernel),
                                    cross, grams_.test_variances);
    } else {
      posterior.variance = regression->variance(cross, grams_.test_variances);
      posterior.log_marginal_likelihood = regression->log_marginal_likelihood();
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    predictions_.push_back(prediction_of(std::move(posterior), chosen, targets_, criterion(), seconds));
  }

  const GpTargets& targets_;
  const GpOptions& options_;
  const Interrupt& interrupt_;
  const RankSolver& ranks_;
  GpGrams grams_;
  const RankGram& train_;
  std::vector<GpPrediction> predictions_;
};

}  // namespace

std::vector<GpPrediction> predict_together(const GpTargets& targets, const GpOptions& options,
                                           const Interrupt& interrupt, GpGrams grams) {
  return RankPredictor(targets, options, interrupt, std::move(grams)).run();
}

}  // namespace widelimit::cli
