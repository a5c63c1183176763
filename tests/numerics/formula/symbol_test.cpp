// Formulas as text.
#include "widelimit/numerics/formula/symbol.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace widelimit::numerics::formula;

TEST_CASE("symbols: arithmetic on constants is done at once") {
  const Symbol sum = Symbol(2) + Symbol(3) * Symbol(4);
  CHECK(sum.statements() == nullptr);
  CHECK(sum.is(14));
  CHECK(root(Symbol(9)).is(3));
}

TEST_CASE("symbols: zeros and ones leave nothing to compute") {
  Statements statements(Precision::wide, "t");
  const Symbol x(statements, "x");
  CHECK((x * Symbol(1)).written(statements) == "x");
  CHECK((x + Symbol(0)).written(statements) == "x");
  CHECK(statements.text().empty());
}

TEST_CASE("symbols: every operation is a constant of its own, in the order of the formula") {
  Statements statements(Precision::wide, "t");
  const Symbol x(statements, "x"), y(statements, "y");
  const Symbol found = root(x * y);
  const std::string& text = statements.text();
  CHECK(text.find("x * y") != std::string::npos);
  CHECK(text.find("sqrt(") > text.find("x * y"));
  CHECK(text.find(found.written(statements) + " = sqrt(") != std::string::npos);
}

TEST_CASE("symbols: a precision writes its own literals") {
  const Statements narrow(Precision::narrow, "t"), wide(Precision::wide, "t");
  CHECK(narrow.literal(0.5) != wide.literal(0.5));
  CHECK(std::stod(wide.literal(0.1)) == 0.1);
  CHECK(std::stof(narrow.literal(0.1)) == 0.1F);
}
