#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <array>
#include <string>

#include "widelimit/numerics/random_stream.hpp"
#include "widelimit/specialization/loss.hpp"

/// Small random models and samples for the tests of this folder.
namespace widelimit::specialization::testing {

inline constexpr std::array all_activations = {HeadActivation::softmax, HeadActivation::softmaxv,
                                               HeadActivation::softmax1, HeadActivation::bayes};

inline Matrix<double> random_matrix(Eigen::Index rows, Eigen::Index columns, numerics::RandomStream& random,
                                    double deviation = 1) {
  Matrix<double> matrix(rows, columns);
  for (double& entry : matrix.reshaped<Eigen::RowMajor>()) entry = deviation * random.normal();
  return matrix;
}

inline Vector<double> random_vector(Eigen::Index size, numerics::RandomStream& random, double deviation = 1) {
  return random_matrix(size, 1, random, deviation);
}

/// Generic parameters away from every symmetry.
inline HeadParameters random_parameters(HeadActivation activation, Eigen::Index heads, Eigen::Index features,
                                        numerics::RandomStream& random) {
  return {random_matrix(heads, features, random), random_matrix(heads, heads, random),
          random_vector(heads, random, 0.5),
          (random_vector(scale_count(activation, heads), random, 0.2).array() + 1).matrix()};
}

/// n samples with random eps.
inline SampleValues random_values(Eigen::Index count, Eigen::Index tokens, Eigen::Index features,
                                  Eigen::Index heads, numerics::RandomStream& random) {
  SampleValues values{count, tokens, features, heads, {}, {}, {}, {}};
  for (Eigen::Index i = 0; i < count * tokens * features; ++i) values.chi_star.push_back(random.normal());
  for (Eigen::Index i = 0; i < count * tokens * heads; ++i) values.xi.push_back(random.normal());
  for (Eigen::Index i = 0; i < count; ++i)
    values.eps.push_back(static_cast<Eigen::Index>(random.below(static_cast<std::uint64_t>(tokens))));
  return values;
}

/// Largest difference of two matrices' entries.
template <typename A, typename B>
double distance(const A& a, const B& b) {
  return (a - b).cwiseAbs().maxCoeff();
}

/// The message of the Error that f throws, or "" if it throws none.
template <typename Function>
std::string message_of(const Function& f) {
  try {
    f();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

/// f() with the given number of threads, more than the machine has cores if need be.
template <typename Function>
auto with_threads(int threads, const Function& f) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  return arena.execute(f);
}

/// Central difference of f in one entry.
template <typename Function>
double slope(double& entry, const Function& f, double step = 1e-5) {
  const double at = entry;
  entry = at + step;
  const double above = f();
  entry = at - step;
  const double below = f();
  entry = at;
  return (above - below) / (2 * step);
}

}  // namespace widelimit::specialization::testing
