#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "json_fields.hpp"
#include "widelimit/specialization/samples.hpp"

namespace widelimit::specialization {

/// Computed fields of a reference case, nested lists in row-major order.
class CaseFields {
 public:
  void add(const std::string& name, double value) { values_[name].push_back(value); }
  template <typename Derived>
  void add(const std::string& name, const Eigen::MatrixBase<Derived>& matrix) {
    std::vector<double>& list = values_[name];
    for (Index i = 0; i < matrix.rows(); ++i)
      for (Index j = 0; j < matrix.cols(); ++j) list.push_back(static_cast<double>(matrix(i, j)));
  }
  /// ArgumentError if the case gave no such field.
  const std::vector<double>& at(const std::string& name) const;
  bool has(const std::string& name) const { return values_.contains(name); }

 private:
  std::map<std::string, std::vector<double>> values_;
};

/// Recomputed values of a stochastic case: means over independent repetitions, and the standard errors of
/// these means as the repetitions show them.
struct StochasticFields {
  CaseFields values;
  CaseFields standard_errors;
  /// Numbers of repetitions here and in the file, over which the variances are pooled; 1 where a standard
  /// error comes from a large sample and needs no pooling.
  double repetitions = 1;
  double repetitions_in_file = 1;
};

/// ArgumentError for a function name that is not known.
CaseFields recompute(const std::string& function, const JsonFields& inputs);
StochasticFields recompute_stochastic(const std::string& function, const JsonFields& description,
                                      const JsonFields& inputs, std::uint64_t seed);

/// Samples of a case: chi_star[n][l][f], xi[n][l][h], eps[n] and, where present, weights[n].
SampleValues sample_values(const JsonFields& inputs);

}  // namespace widelimit::specialization
