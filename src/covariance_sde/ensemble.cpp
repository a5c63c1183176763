#include "widelimit/covariance_sde/ensemble.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "covariance_sde/arguments.hpp"
#include "numerics/eigen_solver.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::covariance_sde {

namespace {

std::size_t pair_count(Index tokens) { return static_cast<std::size_t>(tokens * (tokens + 1) / 2); }

/// Position of (a, b), a <= b, among the pairs row by row.
Index pair_index(Index tokens, Index a, Index b) {
  if (a > b) std::swap(a, b);
  // The rows before row a hold m, m - 1, ... pairs.
  return a * tokens - a * (a - 1) / 2 + (b - a);
}

double correlation(const Matrix<double>& v, Index a, Index b) {
  return std::clamp(v(a, b) / (std::sqrt(v(a, a)) * std::sqrt(v(b, b))), -1.0, 1.0);
}

template <typename Value>
double pair_mean(const Matrix<double>& v, const Value& value) {
  double sum = 0;
  for (Index a = 0; a < v.rows(); ++a)
    for (Index b = a + 1; b < v.rows(); ++b) sum += value(v, a, b);
  const Index pairs = v.rows() * (v.rows() - 1) / 2;
  return sum / static_cast<double>(pairs);
}

template <typename Value>
std::vector<double> per_path(const CovarianceEnsemble& ensemble, Index time, const Value& value) {
  std::vector<double> values(static_cast<std::size_t>(ensemble.paths()));
  for (Index path = 0; path < ensemble.paths(); ++path)
    values[static_cast<std::size_t>(path)] = value(ensemble.covariance(time, path));
  return values;
}

void require_pairs(std::string_view where, const CovarianceEnsemble& ensemble) {
  if (ensemble.tokens() < 2) throw ArgumentError(fmt::format("{}: needs at least two tokens, got 1", where));
}

}  // namespace

CovarianceEnsemble::CovarianceEnsemble(Index tokens, Index paths, std::vector<double> times,
                                       CovarianceOf kept)
    : tokens_{tokens}, paths_{paths}, times_{std::move(times)}, kept_{kept} {
  require_at_least("CovarianceEnsemble", "tokens", tokens, 1);
  require_at_least("CovarianceEnsemble", "paths", paths, 1);
  require_at_least("CovarianceEnsemble", "times", static_cast<Index>(times_.size()), 1);
  const double t = static_cast<double>(tokens), n = static_cast<double>(paths);
  numerics::require_memory(
      "CovarianceEnsemble",
      fmt::format("{} covariances of {} tokens on {} paths", times_.size(), tokens, paths),
      static_cast<double>(times_.size()) * n * (t * (t + 1) / 2 + 8) * sizeof(double),
      "take fewer tokens, paths or times");
  // Entries that no path has reached stay NaN instead of looking like covariances.
  values_.assign(times_.size() * static_cast<std::size_t>(paths) * pair_count(tokens), std::nan(""));
  outcomes_.resize(static_cast<std::size_t>(paths));
}

std::size_t CovarianceEnsemble::offset(Index time, Index path) const {
  const auto times = static_cast<Index>(times_.size());
  if (time < 0 || time >= times || path < 0 || path >= paths_)
    throw ArgumentError(
        fmt::format("CovarianceEnsemble: time and path must lie in [0, {}) and [0, {}), got {} and {}", times,
                    paths_, time, path));
  // The paths of a time follow each other.
  return static_cast<std::size_t>(time * paths_ + path) * pair_count(tokens_);
}

Matrix<double> CovarianceEnsemble::covariance(Index time, Index path) const {
  const double* value = values_.data() + offset(time, path);
  Matrix<double> v(tokens_, tokens_);
  for (Index a = 0; a < tokens_; ++a)
    for (Index b = a; b < tokens_; ++b) v(a, b) = v(b, a) = *value++;
  return v;
}

void CovarianceEnsemble::set_covariance(Index time, Index path, const Eigen::Ref<const Eigen::MatrixXd>& v) {
  double* value = values_.data() + offset(time, path);
  for (Index a = 0; a < tokens_; ++a)
    // The lower triangle of v is read and stored as the upper one, row by row.
    for (Index b = a; b < tokens_; ++b) *value++ = v(b, a);
}

std::vector<double> CovarianceEnsemble::entries(Index time, Index a, Index b) const {
  require_index("CovarianceEnsemble::entries", "token", a, tokens_);
  require_index("CovarianceEnsemble::entries", "token", b, tokens_);
  const auto pair = static_cast<std::size_t>(pair_index(tokens_, a, b));
  std::vector<double> values(static_cast<std::size_t>(paths_));
  for (Index path = 0; path < paths_; ++path)
    values[static_cast<std::size_t>(path)] = values_[offset(time, path) + pair];
  return values;
}

std::vector<double> CovarianceEnsemble::correlations(Index time, Index a, Index b) const {
  const std::vector<double> left = entries(time, a, a), right = entries(time, b, b);
  std::vector<double> values = entries(time, a, b);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::clamp(values[i] / (std::sqrt(left[i]) * std::sqrt(right[i])), -1.0, 1.0);
  return values;
}

std::vector<double> CovarianceEnsemble::mean_correlations(Index time) const {
  require_pairs("CovarianceEnsemble::mean_correlations", *this);
  return per_path(*this, time, [](const Matrix<double>& v) { return pair_mean(v, correlation); });
}

std::vector<double> CovarianceEnsemble::mean_absolute_correlations(Index time) const {
  require_pairs("CovarianceEnsemble::mean_absolute_correlations", *this);
  return per_path(*this, time, [](const Matrix<double>& v) {
    return pair_mean(
        v, [](const Matrix<double>& u, Index a, Index b) { return std::abs(correlation(u, a, b)); });
  });
}

std::vector<double> CovarianceEnsemble::mean_absolute_covariances(Index time) const {
  require_pairs("CovarianceEnsemble::mean_absolute_covariances", *this);
  return per_path(*this, time, [](const Matrix<double>& v) {
    return pair_mean(v, [](const Matrix<double>& u, Index a, Index b) { return std::abs(u(a, b)); });
  });
}

std::vector<double> CovarianceEnsemble::largest_eigenvalues(Index time) const {
  return per_path(*this, time, [](const Matrix<double>& v) {
    return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(v, Eigen::EigenvaluesOnly)
        .eigenvalues()(v.rows() - 1);
  });
}

// A path that stopped later was still running at this time.
bool CovarianceEnsemble::running(Index time, Index path) const {
  return outcome(path).end == PathEnd::horizon ||
         outcome(path).stop_time > times_[static_cast<std::size_t>(time)];
}

std::vector<Index> CovarianceEnsemble::running_paths(Index time) const {
  std::vector<Index> result;
  for (Index path = 0; path < paths_; ++path)
    if (running(time, path)) result.push_back(path);
  return result;
}

std::vector<Index> CovarianceEnsemble::stopped_paths(Index time) const {
  std::vector<Index> result;
  for (Index path = 0; path < paths_; ++path)
    if (!running(time, path)) result.push_back(path);
  return result;
}

Index CovarianceEnsemble::count(PathEnd end) const {
  return std::count_if(outcomes_.begin(), outcomes_.end(),
                       [end](const PathOutcome& outcome) { return outcome.end == end; });
}

std::int64_t CovarianceEnsemble::cone_exits() const {
  std::int64_t sum = 0;
  for (const PathOutcome& outcome : outcomes_) sum += outcome.cone_exits;
  return sum;
}

}  // namespace widelimit::covariance_sde
