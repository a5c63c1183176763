#pragma once

#include <span>

#include "widelimit/matrix.hpp"

/// Predictions that a kernel has to beat to be worth its cost. All are made from the training data alone; arrays are
/// [inputs, columns] and [inputs, outputs]. ArgumentError for shapes that do not fit and for NaN or infinity.
namespace widelimit::gp {

/// Predictions of numbers, with variances of observations; both [n_test, outputs].
struct NumberBaseline {
  Matrix<double> mean;
  Matrix<double> variances;
};

/// The mean of the training targets with their variance (n - 1 degrees of freedom, times 1 + 1 / n).
[[nodiscard]] NumberBaseline mean_baseline(const Matrix<double>& targets, Eigen::Index n_test);

/// The frequencies of the training labels 0 .. classes - 1, [n_test, classes].
[[nodiscard]] Matrix<double> frequency_baseline(std::span<const int> labels, int classes,
                                                Eigen::Index n_test);

/// Ridge regression on standardised columns, the intercept not penalised. Of the penalties 10^-2, 10^-1, ..., 10^5 each
/// output takes the one of least squared error of inputs left out, which is its variance as well.
[[nodiscard]] NumberBaseline linear_baseline(const Matrix<double>& train, const Matrix<double>& targets,
                                             const Matrix<double>& test);

/// Multinomial logistic regression on standardised columns, the intercepts not penalised: the least of the sum of log
/// losses plus half a penalty times the squared weights (scikit-learn's LogisticRegression with C = 1 / penalty), of
/// two classes with one score. Of the penalties 10^5, 10^4, ..., 10^-2 that of least log loss of inputs held out: a
/// fifth of each class at a time, in the order of the inputs. By L-BFGS in the principal directions of the columns.
/// [n_test, classes]
[[nodiscard]] Matrix<double> logistic_baseline(const Matrix<double>& train, std::span<const int> labels,
                                               int classes, const Matrix<double>& test);

}  // namespace widelimit::gp
