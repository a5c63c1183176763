#include "widelimit/gp/leave_one_out.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <span>
#include <unordered_map>
#include <utility>

#include "gp/data_side/input_identity.hpp"
#include "kernel/inputs/copied_inputs.hpp"
#include "widelimit/error.hpp"
#include "widelimit/gp/distinct_inputs.hpp"
#include "widelimit/gp/metrics.hpp"
#include "widelimit/gp/model.hpp"
#include "widelimit/index.hpp"

namespace widelimit::gp {

std::vector<Index> all_inputs(Index n) {
  std::vector<Index> inputs(static_cast<std::size_t>(n));
  std::iota(inputs.begin(), inputs.end(), Index{0});
  return inputs;
}

std::vector<Index> evenly_spaced_inputs(Index n, Index most) {
  if (n <= most) return all_inputs(n);
  std::vector<Index> inputs;
  for (Index i = 0; i < most; ++i) inputs.push_back(i * n / most);
  return inputs;
}

/// Enough for a scale that is fitted to their residuals.
std::vector<Index> representative_inputs(Index n) { return evenly_spaced_inputs(n, 1000); }

namespace {

/// Groups in the order of their numbers, each with its inputs in their order.
std::vector<std::vector<Index>> members_of(Index n, const std::vector<Index>& groups) {
  if (static_cast<Index>(groups.size()) != n)
    throw ArgumentError(
        fmt::format("leave-one-out: expected a group for each of {} inputs, got {}", n, groups.size()));
  std::map<Index, std::vector<Index>> members;
  for (Index i = 0; i < n; ++i) members[groups[static_cast<std::size_t>(i)]].push_back(i);
  if (members.size() < 2)
    throw ArgumentError(
        "leave-one-out: all training inputs are of one group, which are left out together, so that there are "
        "no others to predict them from; give two groups or more");
  std::vector<std::vector<Index>> all;
  for (auto& [group, inputs] : members) all.push_back(std::move(inputs));
  return all;
}

LeftOutSets sets_of(std::span<const std::vector<Index>> groups) {
  LeftOutSets sets;
  for (const std::vector<Index>& inputs : groups) {
    sets.inputs.insert(sets.inputs.end(), inputs.begin(), inputs.end());
    sets.ends.push_back(static_cast<Index>(sets.inputs.size()));
  }
  return sets;
}

}  // namespace

LeftOutSets all_sets(Index n, const std::vector<Index>& groups) {
  if (groups.empty()) return {all_inputs(n)};
  return sets_of(members_of(n, groups));
}

LeftOutSets representative_sets(Index n, const std::vector<Index>& groups) {
  if (groups.empty()) return {representative_inputs(n)};
  const auto members = members_of(n, groups);
  const auto most = static_cast<Index>(representative_inputs(n).size());
  if (n <= most) return sets_of(members);
  // As many as have that many inputs on average, one at least.
  const auto all = static_cast<Index>(members.size()), count = std::max<Index>(1, all * most / n);
  std::vector<std::vector<Index>> chosen;
  for (Index k = 0; k < count; ++k) chosen.push_back(members[static_cast<std::size_t>(k * all / count)]);
  return sets_of(chosen);
}

double LeaveOneOut::negative_log_predictive_density() const {
  // The residuals stand for the means of targets that are 0, because only differences count.
  return gp::negative_log_predictive_density(residuals, variances, 0,
                                             Matrix<double>::Zero(residuals.rows(), residuals.cols()));
}

double LeaveOneOut::mean_squared_error() const {
  return residuals.squaredNorm() / static_cast<double>(residuals.size());
}

double LeaveOneOut::most_likely_scale(const char* where) const {
  // a = mean r^2 / v (docs/theory/inference.md, section 3).
  const double sum = (residuals.rowwise().squaredNorm().array() / variances.array()).sum();
  if (!std::isfinite(sum))
    throw NumericalError(fmt::format(
        "{}: networks trained on all inputs but one have outputs without variance there; regularise", where));
  return sum / static_cast<double>(residuals.size());
}

Vector<double> LeaveOneOut::most_likely_scales(const char* where) const {
  Vector<double> scales(residuals.cols());
  for (Index c = 0; c < residuals.cols(); ++c)
    scales(c) = LeaveOneOut{residuals.col(c), variances}.most_likely_scale(where);
  return scales;
}

double ModelLeaveOneOut::negative_log_predictive_density() const {
  if (positive_targets.size() > 0)
    return gp::negative_log_predictive_density(positive_targets - residuals, variances, positive_targets,
                                               {.of_logarithms = true});
  return gp::negative_log_predictive_density(residuals, variances,
                                             Matrix<double>::Zero(residuals.rows(), residuals.cols()));
}

double ModelLeaveOneOut::mean_squared_error() const {
  return residuals.squaredNorm() / static_cast<double>(residuals.size());
}

std::string DistinctInputs::text() const {
  if (repeats() == 0) return "";
  return fmt::format("{} of {} rows {} others: equal rows are left out together", repeats(), of_row.size(),
                     repeats() == 1 ? "repeats" : "repeat");
}

namespace {

/// The group of each distinct input, numbered as they first appear: groups that share an input are one.
std::vector<Index> joined_groups(const DistinctInputs& distinct, std::span<const Index> groups) {
  if (groups.empty()) return {};
  std::map<Index, std::size_t> first_input;  // Of each group of rows.
  std::vector<std::size_t> parent(distinct.rows.size());
  std::iota(parent.begin(), parent.end(), std::size_t{0});
  const auto root_of = [&](std::size_t input) {
    while (parent[input] != input) input = parent[input] = parent[parent[input]];
    return input;
  };
  for (std::size_t row = 0; row < groups.size(); ++row) {
    const auto input = static_cast<std::size_t>(distinct.of_row[row]);
    const auto [known, is_new] = first_input.try_emplace(groups[row], input);
    const std::size_t one = root_of(input), other = root_of(known->second);
    // The earlier one is the root, so that numbers follow the first appearance.
    if (!is_new && one != other) parent[std::max(one, other)] = std::min(one, other);
  }
  std::vector<Index> joined(parent.size());
  std::map<std::size_t, Index> numbers;
  for (std::size_t input = 0; input < parent.size(); ++input)
    joined[input] = numbers.try_emplace(root_of(input), static_cast<Index>(numbers.size())).first->second;
  return joined;
}

}  // namespace

template <typename Scalar>
DistinctInputs distinct_inputs(const Inputs<Scalar>& x, std::span<const Index> groups) {
  if (!groups.empty() && static_cast<Index>(groups.size()) != x.size())
    throw ArgumentError(
        fmt::format("groups: expected one for each of {} training inputs, got {}", x.size(), groups.size()));
  DistinctInputs distinct;
  std::unordered_map<std::size_t, std::vector<Index>> known;
  for (Index row = 0; row < x.size(); ++row) {
    std::vector<Index>& candidates = known[hash_of_input(x, row)];
    const auto found = std::ranges::find_if(candidates, [&](Index input) {
      return are_equal_inputs(x, distinct.rows[static_cast<std::size_t>(input)], x, row);
    });
    if (found != candidates.end()) {
      distinct.of_row.push_back(*found);
      continue;
    }
    candidates.push_back(distinct.size());
    distinct.of_row.push_back(distinct.size());
    distinct.rows.push_back(row);
  }
  distinct.groups = joined_groups(distinct, groups);
  return distinct;
}

template <typename To, typename Scalar>
Inputs<To> inputs_of_rows(const Inputs<Scalar>& x, const std::vector<Index>& rows) {
  std::vector<Inputs<Scalar>> single;
  for (const Index row : rows) single.push_back(x.single(row));
  std::vector<const Inputs<Scalar>*> pointers;
  for (const Inputs<Scalar>& one : single) pointers.push_back(&one);
  return copied_inputs<To, Scalar>(pointers);
}

template <typename Scalar>
DistinctInputs joined_inputs(const Inputs<Scalar>& first, const Inputs<Scalar>& second,
                             std::vector<Index> groups) {
  if (!groups.empty())
    for (Index next = std::ranges::max(groups) + 1, k = 0; k < second.size(); ++k) groups.push_back(next + k);
  return distinct_inputs(copied_inputs<Scalar, Scalar>({&first, &second}), groups);
}

template DistinctInputs joined_inputs(const Inputs<float>&, const Inputs<float>&, std::vector<Index>);
template DistinctInputs joined_inputs(const Inputs<double>&, const Inputs<double>&, std::vector<Index>);
template DistinctInputs distinct_inputs(const Inputs<float>&, std::span<const Index>);
template DistinctInputs distinct_inputs(const Inputs<double>&, std::span<const Index>);
template Inputs<float> inputs_of_rows(const Inputs<float>&, const std::vector<Index>&);
template Inputs<double> inputs_of_rows(const Inputs<float>&, const std::vector<Index>&);
template Inputs<double> inputs_of_rows(const Inputs<double>&, const std::vector<Index>&);

}  // namespace widelimit::gp
