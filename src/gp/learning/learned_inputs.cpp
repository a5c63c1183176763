#include "widelimit/gp/learned_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "gp/checks.hpp"
#include "gp/learning/learned_parts.hpp"
#include "gp/learning/left_out_score.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/leave_one_out.hpp"
#include "widelimit/gp/regression.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace widelimit::gp {
namespace {

constexpr const char* called = "learn_inputs";

template <typename Scalar>
void require_learnable(const Inputs<Scalar>& x, const Matrix<double>& y, const LearningOptions& options) {
  require_shape(y, x.size(), -1, called, "the targets");
  require_finite(y, called, "the targets");
  if (x.is_ragged() && x.axes() > 1)
    throw ArgumentError(fmt::format("{}: expected vectors, sequences, or images of one size", called));
  if (!options.groups.empty() && static_cast<Index>(options.groups.size()) != x.channels())
    throw ArgumentError(fmt::format("{}: expected a group for each of {} channels, got {}", called,
                                    x.channels(), options.groups.size()));
  for (const Index group : options.groups)
    if (group < 0 || group >= x.channels())
      throw ArgumentError(
          fmt::format("{}: expected groups from 0 to {}, got {}", called, x.channels() - 1, group));
  if (options.kernel == Kernels::both)
    throw ArgumentError(fmt::format("{}: expected one kernel, nngp or ntk", called));
  if (options.how == InputLearning::features && options.rounds < 1)
    throw ArgumentError(fmt::format("{}: expected 1 round or more, got {}", called, options.rounds));
  if (const auto distinct = distinct_inputs(x, options.row_groups).size(); distinct < 6 && x.size() >= 6)
    throw ArgumentError(fmt::format("{}: expected 6 different inputs or more, got {} in {} rows", called,
                                    distinct, x.size()));
  if (options.steps < 1 || options.most_inputs < 6 || x.size() < 6 || !(options.spread > 0))
    throw ArgumentError(
        fmt::format("{}: expected 1 step or more, 6 inputs or more and a positive spread, got {}, {} "
                    "and {}",
                    called, options.steps, std::min(x.size(), options.most_inputs), options.spread));
}

/// 0 .. n - 1 in an order that has nothing to do with that of the data.
std::vector<Index> shuffled(Index n) {
  numerics::RandomStream random(0, 0);
  std::vector<std::pair<double, Index>> keys;
  for (Index i = 0; i < n; ++i) keys.emplace_back(random.normal(), i);
  std::ranges::sort(keys);
  std::vector<Index> order;
  for (const auto& [key, i] : keys) order.push_back(i);
  return order;
}

std::vector<Index> chosen_groups(const std::vector<Index>& groups, const std::vector<Index>& chosen) {
  std::vector<Index> of_chosen;
  for (const Index i : chosen) of_chosen.push_back(groups[static_cast<std::size_t>(i)]);
  return of_chosen;
}

/// Of the targets of the rows of each distinct input.
Matrix<double> means_of(const DistinctInputs& distinct, const Matrix<double>& y) {
  if (distinct.repeats() == 0) return y;
  Matrix<double> means = Matrix<double>::Zero(distinct.size(), y.cols());
  Vector<double> counts = Vector<double>::Zero(distinct.size());
  for (Index row = 0; row < y.rows(); ++row) {
    const Index input = distinct.of_row[static_cast<std::size_t>(row)];
    means.row(input) += y.row(row);
    ++counts(input);
  }
  return counts.cwiseInverse().asDiagonal() * means;
}

LearnedInputs learned_from(const Network& network, const Inputs<double>& x, const Matrix<double>& y,
                           const LearningOptions& options, const RunControl& run) {
  return options.how == InputLearning::relevance ? learn_relevance(network, x, y, options, run)
                                                 : learn_features(network, x, y, options, run);
}

/// Judges what is learned by data that it was not learned from: each row of a third of the data, by what was learned
/// from the other two. The densities of training data left out say too little, since all of them have chosen the
/// scales.
class Folds {
 public:
  Folds(const Network& network, const Inputs<double>& x, const Matrix<double>& y,
        const LearningOptions& options, const RunControl& run)
      : network_{network}, x_{x}, y_{y}, options_{options}, run_{run} {}

  /// Sets what is said about all rows, and whether it is better by more than its standard error.
  void judge(LearnedInputs& learned) const {
    const auto count = static_cast<std::size_t>(x_.size());
    const LeftOutSets sets = shuffled_sets();
    const std::vector<Index>& order = sets.inputs;
    Vector<double> before(x_.size()), after(x_.size());
    std::size_t first = 0;
    for (std::size_t fold = 0; fold < folds; ++fold) {
      // The end of the set that reaches the third.
      const auto third = static_cast<Index>((fold + 1) * count / folds);
      const auto last = static_cast<std::size_t>(*std::ranges::lower_bound(sets.ends, third));
      if (last <= first || (fold + 1 < folds && last == count))
        throw ArgumentError(fmt::format(
            "{}: expected groups of rows that make three parts of alike sizes, got {} groups of {} inputs",
            called, sets.ends.size(), count));
      std::vector<Index> held(order.begin() + static_cast<std::ptrdiff_t>(first),
                              order.begin() + static_cast<std::ptrdiff_t>(last)),
          seen;
      for (std::size_t i = 0; i < count; ++i)
        if (i < first || i >= last) seen.push_back(order[i]);
      const Index rows = static_cast<Index>(held.size()), at = static_cast<Index>(first);
      LearningOptions options = options_;
      if (!options.row_groups.empty()) options.row_groups = chosen_groups(options_.row_groups, seen);
      const Fold parts{inputs_of_rows<double>(x_, seen), y_(seen, Eigen::all),
                       inputs_of_rows<double>(x_, held), y_(held, Eigen::all), options.row_groups};
      before.segment(at, rows) = scores(parts, {.map = {}, .network = network_});
      after.segment(at, rows) = scores(parts, learned_from(network_, parts.x, parts.y, options, run_));
      first = last;
    }
    const Vector<double> change = after - before;
    const auto n = static_cast<double>(count);
    const double deviation = std::sqrt((change.array() - change.mean()).square().sum() / (n - 1));
    learned.before = before.mean();
    learned.after = after.mean();
    learned.standard_error = deviation / std::sqrt(n);
    learned.kept = change.mean() < -learned.standard_error;
  }

 private:
  static constexpr std::size_t folds = 3;

  struct Fold {
    Inputs<double> x;
    Matrix<double> y;
    Inputs<double> held_x;
    Matrix<double> held_y;
    std::vector<Index> groups;  ///< Of x.
  };

  /// All sets that are left out together, in an order that has nothing to do with that of the data.
  [[nodiscard]] LeftOutSets shuffled_sets() const {
    const LeftOutSets sets = all_sets(x_.size(), options_.row_groups);
    const bool single = sets.ends.empty();
    LeftOutSets mixed;
    for (const Index set : shuffled(static_cast<Index>(single ? sets.inputs.size() : sets.ends.size()))) {
      const auto k = static_cast<std::size_t>(set);
      const Index begin = single ? set : (k == 0 ? 0 : sets.ends[k - 1]),
                  end = single ? set + 1 : sets.ends[k];
      for (Index i = begin; i < end; ++i) mixed.inputs.push_back(sets.inputs[static_cast<std::size_t>(i)]);
      mixed.ends.push_back(static_cast<Index>(mixed.inputs.size()));
    }
    return mixed;
  }

  [[nodiscard]] Vector<double> scores(const Fold& fold, const LearnedInputs& learned) const {
    const Inputs<double> x = learned.map.apply(fold.x), held = learned.map.apply(fold.held_x);
    Matrix<double> gram = learning_gram(learned.network, x, options_.kernel, run_);
    const Noise noise =
        options_.noise ? *options_.noise
        : learned.regulariser
            ? RelativeRegulariser(*learned.regulariser)
            : RelativeRegulariser(
                  left_out_choice(gram, {fold.y, options_.kind, fold.groups}, run_.threads).regulariser);
    const Regression regression = Regression::fit(std::move(gram), fold.y, noise, run_.threads);
    const GramOptions how{.kernels = options_.kernel, .threads = run_.threads, .stop = run_.stop};
    const auto cross = widelimit::gram(learned.network, held, x, how);
    const auto own = gram_diagonal(learned.network, held, how);
    const bool ntk = options_.kernel == Kernels::ntk;
    const Vector<double> variances = (ntk ? own.ntk : own.nngp).col(0);
    return held_out_scores(regression, {fold.y, options_.kind, fold.groups},
                           {ntk ? cross.ntk : cross.nngp, variances, fold.held_y});
  }

  const Network& network_;
  const Inputs<double>& x_;
  const Matrix<double>& y_;
  const LearningOptions& options_;
  const RunControl& run_;
};

}  // namespace

Matrix<double> learning_gram(const Network& network, const Inputs<double>& x, Kernels kernel,
                             const RunControl& run) {
  auto result = gram(network, x, {.kernels = kernel, .threads = run.threads, .stop = run.stop});
  return kernel == Kernels::ntk ? std::move(result.ntk) : std::move(result.nngp);
}

KernelCotangents<double> learning_cotangents(Matrix<double> cotangents, Kernels kernel) {
  if (kernel == Kernels::ntk) return {.nngp = {}, .ntk = std::move(cotangents)};
  return {.nngp = std::move(cotangents), .ntk = {}};
}

template <typename Scalar>
LearnedInputs learn_inputs(const Network& network, const Inputs<Scalar>& x, const Matrix<double>& y,
                           const LearningOptions& options, const RunControl& run) {
  if (options.how == InputLearning::none) return {.map = {}, .network = network};
  require_learnable(x, y, options);
  const DistinctInputs distinct = distinct_inputs(x, options.row_groups);
  std::vector<Index> places = evenly_spaced_inputs(distinct.size(), options.most_inputs), chosen;
  for (const Index place : places) chosen.push_back(distinct.rows[static_cast<std::size_t>(place)]);
  const Inputs<double> inputs = inputs_of_rows<double>(x, chosen);
  const Matrix<double> targets = means_of(distinct, y)(places, Eigen::all);
  LearningOptions how = options;
  how.row_groups = distinct.groups.empty() ? distinct.groups : chosen_groups(distinct.groups, places);
  LearnedInputs learned = learned_from(network, inputs, targets, how, run);
  if (how.check) Folds(network, inputs, targets, how, run).judge(learned);
  if (learned.kept) return learned;
  // The result says what was learned all the same.
  learned.rejected = learned.map;
  learned.map = FeatureMap();
  learned.network = network;
  learned.regulariser.reset();
  return learned;
}

template LearnedInputs learn_inputs(const Network&, const Inputs<float>&, const Matrix<double>&,
                                    const LearningOptions&, const RunControl&);
template LearnedInputs learn_inputs(const Network&, const Inputs<double>&, const Matrix<double>&,
                                    const LearningOptions&, const RunControl&);

}  // namespace widelimit::gp
