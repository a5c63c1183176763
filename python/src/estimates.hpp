#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <vector>

#include "arrays.hpp"
#include "widelimit/numerics/statistics.hpp"

namespace widelimit::python {

inline DoubleArrayObject array_of_values(std::span<const double> values) {
  return array_of(
      Vector<double>(Eigen::Map<const Vector<double>>(values.data(), static_cast<Index>(values.size()))));
}

/// value_of(element) of every element.
template <typename Element, typename ValueOf>
DoubleArrayObject array_of_each(const std::vector<Element>& elements, const ValueOf& value_of) {
  std::vector<double> values;
  values.reserve(elements.size());
  for (const Element& element : elements) values.push_back(value_of(element));
  return array_of_values(values);
}

/// (value, standard error).
inline nanobind::tuple pair_of(const numerics::Estimate& estimate) {
  return nanobind::make_tuple(estimate.value, estimate.standard_error);
}

/// (values, standard errors) of what estimate_of(element) gives.
template <typename Element, typename EstimateOf>
nanobind::tuple arrays_of_estimates(const std::vector<Element>& elements, const EstimateOf& estimate_of) {
  return nanobind::make_tuple(
      array_of_each(elements, [&](const Element& element) { return estimate_of(element).value; }),
      array_of_each(elements, [&](const Element& element) { return estimate_of(element).standard_error; }));
}

/// Matrices of one shape, below each other.
inline DoubleArrayObject array_of_stacked(const std::vector<Matrix<double>>& matrices) {
  const Index rows = matrices.front().rows();
  Matrix<double> all(rows * static_cast<Index>(matrices.size()), matrices.front().cols());
  for (std::size_t k = 0; k < matrices.size(); ++k)
    all.middleRows(rows * static_cast<Index>(k), rows) = matrices[k];
  return array_of(std::move(all));
}

}  // namespace widelimit::python
