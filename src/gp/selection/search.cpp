#include "widelimit/gp/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <nlopt.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::gp {
namespace {

void require_parameter(const SearchParameter& parameter) {
  const auto fail = [&](const char* expected) {
    throw ArgumentError(fmt::format("search: {}: expected {}, got {} to {}", parameter.name, expected,
                                    parameter.lower, parameter.upper));
  };
  if (!std::isfinite(parameter.lower) || !std::isfinite(parameter.upper) || parameter.lower > parameter.upper)
    fail("finite bounds, the lower one first");
  if (parameter.scale == SearchScale::logarithmic && !(parameter.lower > 0))
    fail("positive bounds for a logarithmic scale");
  if (parameter.scale == SearchScale::integer &&
      (parameter.lower != std::floor(parameter.lower) || parameter.upper != std::floor(parameter.upper)))
    fail("whole bounds for integers");
}

/// The number at a place of the unit interval; its ends are the bounds, bit for bit.
double value_at(const SearchParameter& parameter, double place) {
  const auto [name, lower, upper, scale] = parameter;
  if (place <= 0) return lower;
  if (place >= 1) return upper;
  switch (scale) {
    case SearchScale::linear:
      return lower + place * (upper - lower);
    case SearchScale::logarithmic:
      // The exponential of a mean of logarithms: a quotient of the bounds could overflow.
      return std::clamp(std::exp((1 - place) * std::log(lower) + place * std::log(upper)), lower, upper);
    case SearchScale::integer:
      return std::min(lower + std::floor(place * (upper - lower + 1)), upper);
  }
  return lower;
}

/// The derivative of value_at() by the place.
double slope_at(const SearchParameter& parameter, double value) {
  const auto& [name, lower, upper, scale] = parameter;
  return scale == SearchScale::logarithmic ? value * (std::log(upper) - std::log(lower)) : upper - lower;
}

/// Scores and differentiates each choice once, and counts them.
class TrialLog {
 public:
  TrialLog(const std::vector<SearchParameter>& parameters,
           const std::function<double(const std::vector<double>&)>& score, const SearchOptions& options)
      : parameters_{parameters}, score_{score}, gradient_{options.gradient} {
    for (const Trial& trial : options.known) known_[trial.values] = trial.score;
  }

  /// Scores until there are `most` trials or the optimiser ends, which starts at `start` in the unit cube. False if it
  /// could not go on for another reason.
  bool run(nlopt::algorithm algorithm, int most, std::vector<double> start, double step) {
    nlopt::opt optimiser(algorithm, static_cast<unsigned>(parameters_.size()));
    optimiser.set_lower_bounds(0);
    optimiser.set_upper_bounds(1);
    optimiser.set_initial_step(step);
    optimiser.set_xtol_abs(1e-6);
    constexpr int repetitions = 20;  // of a choice: all places of an integer's interval are one
    optimiser.set_maxeval(repetitions * most);
    most_ = most;
    optimiser_ = &optimiser;
    optimiser.set_min_objective(
        [](const std::vector<double>& place, std::vector<double>& slopes, void* log) {
          return static_cast<TrialLog*>(log)->objective(place, slopes);
        },
        this);
    double least = 0;
    try {
      if (static_cast<int>(trials_.size()) < most) optimiser.optimize(start, least);
    } catch (const nlopt::forced_stop&) {
      if (error_) std::rethrow_exception(error_);
      if (lacks_derivatives_) return false;
    } catch (const nlopt::roundoff_limited&) {
      // It can refine no further.
    } catch (const std::runtime_error&) {
      // L-BFGS gives up where no step along its direction leads down.
      if (algorithm != nlopt::LD_LBFGS) throw;
      return false;
    }
    return true;
  }

  [[nodiscard]] const std::vector<double>& best_place() const { return best_.place; }
  [[nodiscard]] std::vector<Trial> take() && { return std::move(trials_); }

 private:
  /// What is known of a choice.
  struct Known {
    double score;
    std::optional<std::vector<double>> slopes;
  };
  struct Best {
    std::vector<double> place;  ///< Empty until there is one.
    double score = 0;
  };

  /// `slopes`: takes the derivatives with respect to the place; empty if none are wanted.
  double objective(const std::vector<double>& place, std::vector<double>& slopes) {
    std::vector<double> values;
    for (std::size_t i = 0; i < place.size(); ++i) values.push_back(value_at(parameters_[i], place[i]));
    // Choices that were tried before cost nothing and are always answered; a further one ends the optimiser.
    const auto tried = tried_.find(values);
    if (tried == tried_.end() && static_cast<int>(trials_.size()) >= most_) {
      optimiser_->force_stop();
      return worst_;
    }
    const double score = tried != tried_.end() ? tried->second.score : first_score(values);
    if (std::isfinite(score) && (best_.place.empty() || score < best_.score)) best_ = {place, score};
    if (!slopes.empty()) differentiate(values, std::isfinite(score), slopes);
    return std::isfinite(score) ? score : worst_;
  }

  void differentiate(const std::vector<double>& values, bool has_score, std::vector<double>& slopes) {
    std::fill(slopes.begin(), slopes.end(), 0);
    if (!has_score || error_) return;
    try {
      std::optional<std::vector<double>>& known = tried_.at(values).slopes;
      if (!known) known = gradient_(values);
      const std::vector<double>& found = *known;
      lacks_derivatives_ = found.empty();
      if (found.size() != slopes.size() && !lacks_derivatives_)
        throw ArgumentError(
            fmt::format("search: expected {} derivatives of the score, got {}", slopes.size(), found.size()));
      for (std::size_t i = 0; i < found.size(); ++i)
        slopes[i] = found[i] * slope_at(parameters_[i], values[i]);
    } catch (...) {
      error_ = std::current_exception();
    }
    if (error_ || lacks_derivatives_) optimiser_->force_stop();
  }

  double first_score(const std::vector<double>& values) {
    const auto known = known_.find(values);
    try {
      return noted(values, known != known_.end() ? known->second : score_(values));
    } catch (...) {
      error_ = std::current_exception();
      optimiser_->force_stop();
      return worst_;
    }
  }

  double noted(const std::vector<double>& values, double score) {
    tried_[values] = {score, {}};
    trials_.push_back({values, score});
    // Optimisers take no NaN, so a choice without a score gets a number that is worse than all scores.
    if (std::isfinite(score)) worst_ = std::max(worst_, 2 * std::abs(score) + 1);
    return score;
  }

  const std::vector<SearchParameter>& parameters_;
  const std::function<double(const std::vector<double>&)>& score_;
  const std::function<std::vector<double>(const std::vector<double>&)>& gradient_;
  std::map<std::vector<double>, double> known_;
  std::map<std::vector<double>, Known> tried_;
  std::vector<Trial> trials_;
  Best best_;
  double worst_ = 1e6;  ///< The score of choices that have none.
  int most_ = 0;
  nlopt::opt* optimiser_ = nullptr;
  std::exception_ptr error_;
  bool lacks_derivatives_ = false;
};

}  // namespace

std::vector<Trial> search(const std::vector<SearchParameter>& parameters,
                          const std::function<double(const std::vector<double>&)>& score,
                          const SearchOptions& options) {
  if (parameters.empty()) throw ArgumentError("search: expected at least one parameter, got none");
  for (const SearchParameter& parameter : parameters) require_parameter(parameter);
  if (options.trials < 1)
    throw ArgumentError(fmt::format("search: expected at least one trial, got {}", options.trials));
  TrialLog log(parameters, score, options);
  const std::vector<double> middle(parameters.size(), 0.5);
  // Three fifths of the trials cover the whole box by DIRECT-L. The others refine its best place: by L-BFGS with
  // derivatives, and by Subplex without them, or where L-BFGS could not go on.
  const int over_the_box = (3 * options.trials + 4) / 5;
  log.run(nlopt::GN_DIRECT_L, over_the_box, middle, 0.25);
  const auto best = [&] { return log.best_place().empty() ? middle : log.best_place(); };
  const bool has_derivatives =
      options.gradient && std::none_of(parameters.begin(), parameters.end(), [](const SearchParameter& one) {
        return one.scale == SearchScale::integer;
      });
  const bool refined = has_derivatives && log.run(nlopt::LD_LBFGS, options.trials, best(), 0.1);
  if (!refined) log.run(nlopt::LN_SBPLX, options.trials, best(), 0.1);
  return std::move(log).take();
}

const Trial& best_trial(const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials)
    if (!std::isnan(trial.score) && (best == nullptr || trial.score < best->score)) best = &trial;
  if (best == nullptr)
    throw ArgumentError(fmt::format("best_trial: none of {} trials has a score", trials.size()));
  return *best;
}

}  // namespace widelimit::gp
