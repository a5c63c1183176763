#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "numerics/wide_duals.hpp"
#include "widelimit/numerics/activation.hpp"

/// Rows of entries of any variances and covariances through an activation, and their errors.
namespace widelimit::testing {

struct RowCase {
  std::string name;
  numerics::ActivationPtr activation;
  std::function<WideDual(const WidePair&)> dual;
  double largest_variance = 1e13;
};

/// Entries of a row and what an activation makes of them.
template <typename Scalar>
struct MappedRow {
  std::vector<Scalar> p, q, c, nngp, ntk;

  void add(double left, double right, double covariance) {
    p.push_back(static_cast<Scalar>(left));
    q.push_back(static_cast<Scalar>(right));
    c.push_back(static_cast<Scalar>(covariance));
  }

  void map(const numerics::Activation& activation, bool of_multiples = false) {
    const std::size_t size = c.size(), count = activation.auxiliary_count();
    std::vector<Scalar> numbers(2 * count * size);
    std::vector<Scalar*> rows;
    for (std::size_t k = 0; k < 2 * count; ++k) rows.push_back(numbers.data() + k * size);
    activation.prepare(p.data(), rows.data(), size);
    activation.prepare(q.data(), rows.data() + count, size);
    nngp = c;
    ntk.assign(size, Scalar{1});
    const numerics::DualRow<Scalar> row{nngp.data(), ntk.data(), rows.data(), rows.data() + count, size};
    of_multiples ? activation.apply_to_multiples(row) : activation.apply(row);
  }
};

struct Errors {
  double value = 0, derivative = 0;
};

/// The largest errors relative to the root mean squares.
template <typename Scalar>
Errors largest_errors(const RowCase& tested, const MappedRow<Scalar>& row) {
  Errors largest;
  for (std::size_t i = 0; i < row.c.size(); ++i) {
    const auto p = static_cast<double>(row.p[i]), q = static_cast<double>(row.q[i]);
    if (p > tested.largest_variance || q > tested.largest_variance) continue;
    const WideDual exact = tested.dual(precise_pair(p, q, static_cast<double>(row.c[i])));
    const WideDual first = tested.dual(precise_pair(p, p, p)), second = tested.dual(precise_pair(q, q, q));
    const long double value =
        std::abs(static_cast<long double>(row.nngp[i]) - exact.value) / std::sqrt(first.value * second.value);
    const long double derivative = std::abs(static_cast<long double>(row.ntk[i]) - exact.derivative) /
                                   std::sqrt(first.derivative * second.derivative);
    CAPTURE(p);
    CAPTURE(q);
    CAPTURE(row.c[i]);
    REQUIRE(std::isfinite(value));
    REQUIRE(std::isfinite(derivative));
    largest.value = std::max(largest.value, static_cast<double>(value));
    largest.derivative = std::max(largest.derivative, static_cast<double>(derivative));
  }
  return largest;
}

}  // namespace widelimit::testing
