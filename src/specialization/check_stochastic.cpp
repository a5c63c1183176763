#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "numerics/block_sums.hpp"
#include "numerics/count.hpp"
#include "specialization/check_cases.hpp"
#include "specialization/checks.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/symmetric_root.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

namespace {

constexpr std::uint64_t flow_sets = 8;
constexpr int vector_runs = 4;
constexpr int gram_runs = 6;
// Above this the vector form of SGD takes minutes; the file's own values then come from the Gram form, too.
constexpr Index largest_vector_dimension = 500;

StochasticFields bayes_risk_case(const JsonValue& description, const JsonValue& in, std::uint64_t seed) {
  const BayesRisk risk = bayes_risk(prior_of(in), in.at("L"), description.at("samples"), seed);
  return {{{"bayes_risk", risk.risk}}, {{"bayes_risk", risk.standard_error}}};
}

StochasticFields split_rate_case(const JsonValue& description, const JsonValue& in, std::uint64_t seed) {
  const SplitRate rate = split_rate_by_sampling(activation_of(in), in.at("L"), in.at("H"), in.at("nu1"),
                                                in.at("nu2"), description.at("samples"), seed);
  return {{{"rate", rate.rate}}, {{"rate", rate.standard_error}}};
}

StochasticFields population_case(const JsonValue& description, const JsonValue& in, std::uint64_t seed) {
  const HeadParameters parameters = case_parameters(in);
  const auto samples = SampleSet<float>::draw(
      prior_of(in), {in.at("L"), parameters.r.cols(), description.at("samples")}, seed);
  const SampledLoss loss = sampled_loss(activation_of(in), parameters, samples, LossDetail::loss_only);
  return {{{"loss", loss.loss}}, {{"loss", loss.standard_error}}};
}

/// Sums of the numbers of every field over repetitions, in which they are the same fields every time.
class Repetitions {
 public:
  void add(const CaseFields& fields) {
    for (const auto& [name, numbers] : fields) {
      std::vector<numerics::MonteCarloSums>& sums = sums_[name];
      sums.resize(numbers.values().size());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(numbers.values()[i]);
    }
  }

  StochasticFields means(double repetitions_in_file) const {
    StochasticFields out;
    out.repetitions_in_file = repetitions_in_file;
    for (const auto& [name, sums] : sums_)
      for (const numerics::MonteCarloSums& sum : sums) {
        out.repetitions = sum.count();
        out.values[name].append(sum.mean());
        // The variance of MonteCarloSums is that about their mean over n; n - 1 makes it the error of a mean of few.
        out.standard_errors[name].append(std::sqrt(sum.variance() / (sum.count() - 1)));
      }
    return out;
  }

 private:
  std::map<std::string, std::vector<numerics::MonteCarloSums>> sums_;
};

Index step_count(double tau, double step) {
  return numerics::checked_count(std::round(tau / step), numerics::most_steps,
                                 fmt::format("tau: steps of {:g} up to {:g}", step, tau));
}

StochasticFields flow_case(const JsonValue& description, const JsonValue& in, std::uint64_t seed) {
  const Prior prior = prior_of(in);
  const HeadParameters start{in.at("m"),
                             numerics::symmetric_root(in.at("S").get<Matrix<double>>(), overlap_rounding),
                             in.at("b"), in.at("v")};
  FlowOptions options;
  options.step = in.at("step");
  for (const double tau : check::flat_numbers(in.at("tau")))
    options.record.push_back(step_count(tau, options.step));
  options.steps = options.record.back();
  Repetitions repetitions;
  for (std::uint64_t set = 0; set < flow_sets; ++set) {
    const auto samples =
        SampleSet<float>::draw(prior, {in.at("L"), start.r.cols(), description.at("samples")}, seed + set);
    CaseFields fields;
    for (const FlowPoint& point : gradient_flow(activation_of(in), start, samples, options))
      add_flow_point(fields, point);
    repetitions.add(fields);
  }
  return repetitions.means(description.at("sets"));
}

SgdPoint end_of_run(const JsonValue& in, std::uint64_t seed) {
  const HeadActivation activation = activation_of(in);
  const Prior prior = prior_of(in);
  const Index heads = in.at("H"), dimension = in.at("D");
  const double eta = in.at("eta");
  const Matrix<double> m = in.at("planted_m");
  SgdOptions options;
  options.tokens = in.at("L");
  options.batch = in.at("Nb");
  options.gamma = in.at("gamma");
  options.steps = step_count(in.at("tau"), options.gamma);
  options.seed = seed + 1;
  const auto end_from = [&](const auto& random, const auto& run) {
    const auto start = random(activation, heads, prior.features(), dimension, eta, seed);
    return run(activation, prior, plant(start, m), options).back();
  };
  return dimension > largest_vector_dimension ? end_from(random_gram_start, gram_sgd)
                                              : end_from(random_start, sgd);
}

StochasticFields sgd_case(const JsonValue& description, const JsonValue& in, std::uint64_t seed) {
  const int runs = in.at("D").get<Index>() > largest_vector_dimension ? gram_runs : vector_runs;
  Repetitions repetitions;
  for (int run = 0; run < runs; ++run) {
    const SgdPoint end = end_of_run(in, seed + 2 * static_cast<std::uint64_t>(run));
    repetitions.add({{"m", end.overlaps.m}, {"S", end.overlaps.S}, {"b", end.b}, {"v", end.v}});
  }
  return repetitions.means(description.at("runs"));
}

}  // namespace

StochasticFields recompute_stochastic(const std::string& function, const JsonValue& description,
                                      const JsonValue& inputs, std::uint64_t seed) {
  using Case = StochasticFields (*)(const JsonValue&, const JsonValue&, std::uint64_t);
  static const std::map<std::string, Case> cases{{"bayes_risk", bayes_risk_case},
                                                 {"split_rate", split_rate_case},
                                                 {"population_loss", population_case},
                                                 {"gradient_flow", flow_case},
                                                 {"sgd", sgd_case}};
  return check::function_of(cases, function)(description, inputs, seed);
}

}  // namespace widelimit::specialization
