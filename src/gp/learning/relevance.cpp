#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>
#include <nlopt.hpp>
#include <string>
#include <utility>

#include "gp/learning/learned_parts.hpp"
#include "gp/learning/left_out_score.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/kernel/gram_gradient.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/network/network_numbers.hpp"

namespace widelimit::gp {
namespace {

/// Paths of the variances of dense and convolutional layers, wherever they stand in a network's file.
void add_variances(const nlohmann::ordered_json& json, const std::string& path,
                   std::vector<std::string>& paths) {
  if (json.is_array())
    for (std::size_t i = 0; i < json.size(); ++i)
      add_variances(json[i], fmt::format("{}[{}]", path, i), paths);
  if (!json.is_object()) return;
  const bool has_weights = json.contains("layer") && (json["layer"] == "dense" || json["layer"] == "conv");
  for (const auto& [key, value] : json.items()) {
    const std::string inner = path.empty() ? key : path + "." + key;
    if (has_weights && value.is_number() && (key == "weight_variance" || key == "bias_variance"))
      paths.push_back(inner);
    else
      add_variances(value, inner, paths);
  }
}

std::vector<std::string> variances_of(const Network& network) {
  std::vector<std::string> paths;
  add_variances(nlohmann::ordered_json::parse(to_json(network)), "", paths);
  return paths;
}

/// A logarithm that is learned: where it starts, its bounds, and its normal prior.
struct LearnedLogarithm {
  double start;
  double lower;
  double upper;
  double spread;  ///< Of the prior around the start; infinite for none.
};

LearnedLogarithm logarithm_of_variance(const std::string& path, double value) {
  // Without a bias, as library layers have it, a network of ReLUs sees directions only: it begins with a little.
  constexpr double least_bias = 1e-2, smallest_bias = 1e-4, largest = 10, factor = 20;
  if (path.ends_with("bias_variance")) {
    const double start = std::log(std::max(value, least_bias));
    return {start, std::log(smallest_bias), std::log(std::max(largest, largest * value)), 3};
  }
  const double start = std::log(value);
  return {start, start - std::log(factor), start + std::log(factor), 1};
}

/// The negative log evidence, less the log of the priors, of all that is learned: logarithms of scales, then of the
/// regulariser unless the noise is given, then of variances.
class RelevanceObjective {
 public:
  RelevanceObjective(const Network& network, const Inputs<double>& x, const Matrix<double>& y,
                     const LearningOptions& options, const RunControl& run)
      : network_{network}, x_{x}, y_{y}, options_{options}, run_{run}, groups_{options.groups} {
    if (groups_.empty())
      for (Index c = 0; c < x.channels(); ++c) groups_.push_back(c);
    scales_ = *std::max_element(groups_.begin(), groups_.end()) + 1;
    if (options.variances) paths_ = without_zeros(variances_of(network));
    constexpr double smallest_scale = -7, largest_scale = 4, regulariser = 0.1;
    for (Index g = 0; g < scales_; ++g)
      logarithms_.push_back({0, smallest_scale, largest_scale, std::numeric_limits<double>::infinity()});
    if (!options.noise)
      logarithms_.push_back(
          {std::log(regulariser), std::log(1e-6), std::log(1e2), std::numeric_limits<double>::infinity()});
    if (!paths_.empty()) {
      const std::vector<double> values = NetworkNumbers(network, paths_).values();
      for (std::size_t i = 0; i < paths_.size(); ++i)
        logarithms_.push_back(logarithm_of_variance(paths_[i], values[i]));
    }
  }

  [[nodiscard]] const std::vector<LearnedLogarithm>& logarithms() const { return logarithms_; }
  [[nodiscard]] int evaluations() const { return evaluations_; }
  /// What was the lowest, and its value.
  [[nodiscard]] const std::vector<double>& best() const { return best_; }

  [[nodiscard]] FeatureMap map_of(const std::vector<double>& place) const {
    Matrix<double> scales(1, x_.channels());
    for (Index c = 0; c < x_.channels(); ++c)
      scales(0, c) = std::exp(place[static_cast<std::size_t>(groups_[static_cast<std::size_t>(c)])]);
    return FeatureMap(std::move(scales));
  }

  [[nodiscard]] Network network_of(const std::vector<double>& place) const {
    if (paths_.empty()) return network_;
    std::vector<double> values;
    for (std::size_t i = first_variance(); i < place.size(); ++i) values.push_back(std::exp(place[i]));
    return NetworkNumbers(network_, paths_).with(values);
  }

  [[nodiscard]] Noise noise_of(const std::vector<double>& place) const {
    if (options_.noise) return *options_.noise;
    return RelativeRegulariser(std::exp(place[static_cast<std::size_t>(scales_)]));
  }

  [[nodiscard]] Regression regression_at(const std::vector<double>& place) const {
    return Regression::fit(learning_gram(network_of(place), map_of(place).apply(x_), options_.kernel, run_),
                           y_, noise_of(place), run_.threads);
  }

  double operator()(const std::vector<double>& place, std::vector<double>& slopes) {
    ++evaluations_;
    if (run_.progress) run_.progress(evaluations_, options_.steps);
    slopes.assign(place.size(), 0);
    double value = 0;
    try {
      value = evidence(place, slopes);
    } catch (const NumericalError&) {
      // The line search turns back from places where the kernel cannot be factorised.
      slopes.assign(place.size(), 0);
      return std::numeric_limits<double>::max();
    }
    value += priors(place, slopes);
    if (value < lowest_) {
      lowest_ = value;
      best_ = place;
    }
    return value;
  }

 private:
  [[nodiscard]] std::size_t first_variance() const {
    return static_cast<std::size_t>(scales_) + (options_.noise ? 0 : 1);
  }

  /// Weights of variance 0 stay as they are; a logarithm has no place for them.
  [[nodiscard]] std::vector<std::string> without_zeros(const std::vector<std::string>& all) const {
    std::vector<std::string> paths;
    if (all.empty()) return paths;
    const std::vector<double> values = NetworkNumbers(network_, all).values();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (values[i] > 0 || all[i].ends_with("bias_variance")) paths.push_back(all[i]);
    return paths;
  }

  /// The negative log evidence; writes its slopes.
  double evidence(const std::vector<double>& place, std::vector<double>& slopes) const {
    const Network network = network_of(place);
    const Inputs<double> x = map_of(place).apply(x_);
    Matrix<double> gram = learning_gram(network, x, options_.kernel, run_);
    const double mean_diagonal = gram.diagonal().mean();
    const Regression regression = Regression::fit(std::move(gram), y_, noise_of(place), run_.threads);
    Matrix<double> by_gram = -regression.score_cotangents().log_marginal_likelihood;
    if (!options_.noise) {
      const auto at = static_cast<std::size_t>(scales_);
      const double eps = std::exp(place[at]);
      // The cotangent has the noise's share in it: its trace is that of the derivatives by K + lambda I, times 1 + eps.
      slopes[at] = eps * mean_diagonal * by_gram.trace() / (1 + eps);
    }
    const KernelCotangents<double> cotangents = learning_cotangents(std::move(by_gram), options_.kernel);
    add_scale_slopes(x, gram_vjp(network, x, cotangents, run_without_progress()), slopes);
    if (!paths_.empty()) {
      const std::vector<double> by_variance =
          gram_number_vjp(network, x, cotangents, paths_, run_without_progress());
      for (std::size_t i = 0; i < paths_.size(); ++i)
        slopes[first_variance() + i] = by_variance[i] * std::exp(place[first_variance() + i]);
    }
    return -regression.log_marginal_likelihood();
  }

  /// By the logarithm of a scale: the sum over its channels of mapped numbers times the slopes by them.
  void add_scale_slopes(const Inputs<double>& x, const xt::xarray<double>& by_input,
                        std::vector<double>& slopes) const {
    const std::size_t stride = by_input.size() / static_cast<std::size_t>(x.size());
    const auto channels = static_cast<std::size_t>(x.channels());
    for (Index i = 0; i < x.size(); ++i) {
      const auto numbers = x[i];
      const double* by_number = by_input.data() + static_cast<std::size_t>(i) * stride;
      for (std::size_t k = 0; k < numbers.size(); ++k)
        // Numbers at masked positions may be anything, and have slopes of 0.
        if (by_number[k] != 0)
          slopes[static_cast<std::size_t>(groups_[k % channels])] += by_number[k] * numbers[k];
    }
  }

  double priors(const std::vector<double>& place, std::vector<double>& slopes) const {
    const auto count = static_cast<std::size_t>(scales_);
    double mean = 0, sum = 0;
    for (std::size_t g = 0; g < count; ++g) mean += place[g] / static_cast<double>(count);
    const double precision = 1 / (options_.spread * options_.spread);
    for (std::size_t g = 0; g < count; ++g) {
      sum += 0.5 * precision * (place[g] - mean) * (place[g] - mean);
      slopes[g] += precision * (place[g] - mean);
    }
    for (std::size_t i = count; i < place.size(); ++i) {
      const double distance = (place[i] - logarithms_[i].start) / logarithms_[i].spread;
      sum += 0.5 * distance * distance;
      slopes[i] += distance / logarithms_[i].spread;
    }
    return sum;
  }

  [[nodiscard]] RunControl run_without_progress() const {
    return {.threads = run_.threads, .stop = run_.stop};
  }

  const Network& network_;
  const Inputs<double>& x_;
  const Matrix<double>& y_;
  const LearningOptions& options_;
  const RunControl& run_;
  std::vector<Index> groups_;
  Index scales_ = 0;
  std::vector<std::string> paths_;
  std::vector<LearnedLogarithm> logarithms_;
  std::vector<double> best_;
  double lowest_ = std::numeric_limits<double>::max();
  int evaluations_ = 0;
};

/// What NLopt calls: exceptions do not pass through it.
struct GuardedObjective {
  RelevanceObjective& function;
  nlopt::opt& optimiser;
  std::exception_ptr error = {};

  double operator()(const std::vector<double>& place, std::vector<double>& slopes) {
    std::vector<double> found;
    double value = std::numeric_limits<double>::max();
    try {
      value = function(place, found);
    } catch (...) {
      error = std::current_exception();
      optimiser.force_stop();
    }
    if (!slopes.empty() && !error) slopes = found;
    return value;
  }
};

/// Runs L-BFGS within the bounds.
void minimise(RelevanceObjective& objective, int steps) {
  std::vector<double> place, lower, upper;
  for (const LearnedLogarithm& one : objective.logarithms()) {
    place.push_back(one.start);
    lower.push_back(one.lower);
    upper.push_back(one.upper);
  }
  nlopt::opt optimiser(nlopt::LD_LBFGS, static_cast<unsigned>(place.size()));
  optimiser.set_lower_bounds(lower);
  optimiser.set_upper_bounds(upper);
  optimiser.set_maxeval(steps);
  constexpr double enough = 1e-2;  // In units of the log evidence, of which 1 is little.
  optimiser.set_ftol_abs(enough);
  GuardedObjective guarded{objective, optimiser};
  optimiser.set_min_objective(
      [](const std::vector<double>& at, std::vector<double>& slopes, void* function) {
        return (*static_cast<GuardedObjective*>(function))(at, slopes);
      },
      &guarded);
  double value = 0;
  try {
    optimiser.optimize(place, value);
  } catch (const std::runtime_error&) {
    // L-BFGS gives up where rounding, or a place without a factorization, leaves its line search no descent; the lowest
    // place so far is kept.
  }
  if (guarded.error) std::rethrow_exception(guarded.error);
}

}  // namespace

LearnedInputs learn_relevance(const Network& network, const Inputs<double>& x, const Matrix<double>& y,
                              const LearningOptions& options, const RunControl& run) {
  LearnedInputs learned{.map = {}, .network = network};
  const Matrix<double> gram = learning_gram(network, x, options.kernel, run);
  const Noise begin =
      options.noise
          ? *options.noise
          : RelativeRegulariser(
                left_out_choice(gram, {y, options.kind, options.row_groups}, run.threads).regulariser);
  learned.course.push_back(Regression::fit(gram, y, begin, run.threads).log_marginal_likelihood());
  RelevanceObjective objective(network, x, y, options, run);
  minimise(objective, options.steps);
  learned.evaluations = objective.evaluations();
  if (objective.best().empty())
    throw NumericalError("learn_inputs: the evidence could not be computed for any scales");
  const std::vector<double>& best = objective.best();
  const Regression regression = objective.regression_at(best);
  learned.map = objective.map_of(best);
  learned.network = objective.network_of(best);
  if (!options.noise) learned.regulariser = std::get<RelativeRegulariser>(objective.noise_of(best)).value();
  learned.course.push_back(regression.log_marginal_likelihood());
  return learned;
}

}  // namespace widelimit::gp
