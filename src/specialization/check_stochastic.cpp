#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <utility>

#include "check_cases.hpp"
#include "checks.hpp"
#include "numerics/count.hpp"
#include "widelimit/error.hpp"
#include "widelimit/numerics/symmetric_root.hpp"
#include "widelimit/specialization/bayes.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/hessian.hpp"
#include "widelimit/specialization/sgd.hpp"

namespace widelimit::specialization {

namespace {

constexpr std::uint64_t kFlowSets = 8;
constexpr int kVectorRuns = 4;
constexpr int kGramRuns = 6;
// Above this the vector form of SGD takes minutes; the file's own values then come from the Gram form, too.
constexpr Index kLargestVectorDimension = 500;

StochasticFields bayes_risk_case(const JsonFields& description, const JsonFields& in, std::uint64_t seed) {
  const BayesRisk risk =
      bayes_risk(Prior::from_json(in.at("prior")), in.integer("L"), description.integer("samples"), seed);
  StochasticFields out;
  out.values.add("bayes_risk", risk.risk);
  out.standard_errors.add("bayes_risk", risk.standard_error);
  return out;
}

StochasticFields split_rate_case(const JsonFields& description, const JsonFields& in, std::uint64_t seed) {
  const SplitRate rate =
      split_rate_by_sampling(activation_of(in), in.integer("L"), in.integer("H"), in.number("nu1"),
                             in.number("nu2"), description.integer("samples"), seed);
  StochasticFields out;
  out.values.add("rate", rate.rate);
  out.standard_errors.add("rate", rate.standard_error);
  return out;
}

StochasticFields population_case(const JsonFields& description, const JsonFields& in, std::uint64_t seed) {
  const HeadParameters parameters{in.matrix("m"), in.matrix("r"), in.vector("b"), in.vector("v")};
  const auto samples =
      SampleSet<float>::draw(Prior::from_json(in.at("prior")),
                             {in.integer("L"), parameters.r.cols(), description.integer("samples")}, seed);
  const SampledLoss loss = sampled_loss(activation_of(in), parameters, samples, LossDetail::loss_only);
  StochasticFields out;
  out.values.add("loss", loss.loss);
  out.standard_errors.add("loss", loss.standard_error);
  return out;
}

/// Sums of fields and of their squares over repetitions.
class Repetitions {
 public:
  /// Appends one repetition: the same fields in the same order every time.
  void add(const CaseFields& fields, std::initializer_list<const char*> names) {
    ++count_;
    for (const char* name : names) {
      const std::vector<double>& values = fields.at(name);
      auto& [sums, squares] = sums_[name];
      sums.resize(values.size());
      squares.resize(values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        sums[i] += values[i];
        squares[i] += values[i] * values[i];
      }
    }
  }

  StochasticFields means(double repetitions_in_file) const {
    StochasticFields out;
    out.repetitions = count_;
    out.repetitions_in_file = repetitions_in_file;
    for (const auto& [name, pair] : sums_)
      for (std::size_t i = 0; i < pair.first.size(); ++i) {
        const double mean = pair.first[i] / count_;
        const double variance = std::max(pair.second[i] / count_ - mean * mean, 0.0);
        out.values.add(name, mean);
        out.standard_errors.add(name, std::sqrt(variance / (count_ - 1)));
      }
    return out;
  }

 private:
  double count_ = 0;
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> sums_;
};

Index step_count(double tau, double step) {
  return numerics::checked_count(std::round(tau / step), numerics::most_steps,
                                 fmt::format("tau: steps of {:g} up to {:g}", step, tau));
}

StochasticFields flow_case(const JsonFields& description, const JsonFields& in, std::uint64_t seed) {
  const Prior prior = Prior::from_json(in.at("prior"));
  const HeadParameters start{in.matrix("m"), numerics::symmetric_root(in.matrix("S"), overlap_rounding),
                             in.vector("b"), in.vector("v")};
  FlowOptions options;
  options.step = in.number("step");
  for (const double tau : in.flat("tau")) options.record.push_back(step_count(tau, options.step));
  options.steps = options.record.back();
  Repetitions repetitions;
  for (std::uint64_t set = 0; set < kFlowSets; ++set) {
    const auto samples = SampleSet<float>::draw(
        prior, {in.integer("L"), start.r.cols(), description.integer("samples")}, seed + set);
    CaseFields fields;
    for (const FlowPoint& point : gradient_flow(activation_of(in), start, samples, options)) {
      fields.add("loss", point.loss);
      fields.add("m", point.parameters.m);
      fields.add("S", point.S);
      fields.add("b", point.parameters.b);
      fields.add("v", point.parameters.v);
    }
    repetitions.add(fields, {"loss", "m", "S", "b", "v"});
  }
  return repetitions.means(description.number("sets"));
}

SgdPoint end_of_run(const JsonFields& in, std::uint64_t seed) {
  const HeadActivation activation = activation_of(in);
  const Prior prior = Prior::from_json(in.at("prior"));
  const Index heads = in.integer("H"), dimension = in.integer("D");
  const double eta = in.number("eta");
  const Matrix<double> m = in.matrix("planted_m");
  SgdOptions options;
  options.tokens = in.integer("L");
  options.batch = in.integer("Nb");
  options.gamma = in.number("gamma");
  options.steps = step_count(in.number("tau"), options.gamma);
  options.seed = seed + 1;
  const Index features = prior.features();
  if (dimension > kLargestVectorDimension)
    return gram_sgd(activation, prior,
                    plant(random_gram_start(activation, heads, features, dimension, eta, seed), m), options)
        .back();
  return sgd(activation, prior, plant(random_start(activation, heads, features, dimension, eta, seed), m),
             options)
      .back();
}

StochasticFields sgd_case(const JsonFields& description, const JsonFields& in, std::uint64_t seed) {
  const int runs = in.integer("D") > kLargestVectorDimension ? kGramRuns : kVectorRuns;
  Repetitions repetitions;
  for (int run = 0; run < runs; ++run) {
    const SgdPoint end = end_of_run(in, seed + 2 * static_cast<std::uint64_t>(run));
    CaseFields fields;
    fields.add("m", end.overlaps.m);
    fields.add("S", end.overlaps.S);
    fields.add("b", end.b);
    fields.add("v", end.v);
    repetitions.add(fields, {"m", "S", "b", "v"});
  }
  return repetitions.means(description.number("runs"));
}

}  // namespace

StochasticFields recompute_stochastic(const std::string& function, const JsonFields& description,
                                      const JsonFields& inputs, std::uint64_t seed) {
  if (function == "bayes_risk") return bayes_risk_case(description, inputs, seed);
  if (function == "split_rate") return split_rate_case(description, inputs, seed);
  if (function == "population_loss") return population_case(description, inputs, seed);
  if (function == "gradient_flow") return flow_case(description, inputs, seed);
  if (function == "sgd") return sgd_case(description, inputs, seed);
  throw ArgumentError(fmt::format("unknown stochastic function \"{}\"", function));
}

}  // namespace widelimit::specialization
