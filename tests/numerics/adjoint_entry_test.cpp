// What the backward pass writes where the slopes of a user's dual are not finite.
#include "numerics/adjoint_entry.hpp"

#include <doctest/doctest.h>

#include <limits>

namespace widelimit::numerics {
namespace {

/// One entry, with room for its adjoints.
struct OneEntry {
  double nngp = 0.5, ntk = 2, left_variance = 1, right_variance = 1;
  double nngp_adjoint = 0, ntk_adjoint = 0, left_adjoint = 7, right_adjoint = 7;

  AdjointRow<double> row() {
    return {&nngp,         &ntk,         &left_variance, &right_variance, nullptr, nullptr,
            &nngp_adjoint, &ntk_adjoint, &left_adjoint,  &right_adjoint,  1};
  }
};

constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr DualSlopes steep{.dual = {1, infinite},
                           .left = {infinite, infinite},
                           .right = {infinite, infinite},
                           .derivative_in_c = infinite,
                           .value_in_c = infinite};

TEST_CASE("write_checked_adjoint: infinite slopes leave nothing where nothing depends on the entry") {
  OneEntry entry;
  write_checked_adjoint(entry.row(), 0, steep);
  CHECK(entry.nngp_adjoint == 0);
  CHECK(entry.ntk_adjoint == 0);
  CHECK(entry.left_adjoint == 0);
  CHECK(entry.right_adjoint == 0);
}

TEST_CASE("write_checked_adjoint: infinite slopes are an error where something depends on the entry") {
  OneEntry by_nngp{.nngp_adjoint = 0.1}, by_ntk{.ntk_adjoint = 0.1};
  CHECK_THROWS_AS(write_checked_adjoint(by_nngp.row(), 0, steep), NumericalError);
  CHECK_THROWS_AS(write_checked_adjoint(by_ntk.row(), 0, steep), NumericalError);
}

TEST_CASE("write_checked_adjoint: finite slopes are taken by the chain rule") {
  OneEntry entry{.nngp_adjoint = 0.5, .ntk_adjoint = 0.25};
  write_checked_adjoint(
      entry.row(), 0,
      {.dual = {1, 3}, .left = {10, 20}, .right = {100, 200}, .derivative_in_c = 1000, .value_in_c = 3});
  CHECK(entry.ntk_adjoint == 0.25 * 3);
  CHECK(entry.nngp_adjoint == 0.5 * 3 + 0.25 * 2 * 1000);
  CHECK(entry.left_adjoint == 0.5 * 10 + 0.25 * 2 * 20);
  CHECK(entry.right_adjoint == 0.5 * 100 + 0.25 * 2 * 200);
}

}  // namespace
}  // namespace widelimit::numerics
