#include "numerics/formula/symbol.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>

namespace widelimit::numerics::formula {
namespace {

Statements& statements_of(std::initializer_list<const Symbol*> symbols) {
  for (const Symbol* symbol : symbols)
    if (symbol->statements() != nullptr) return *symbol->statements();
  // Constants are folded by number<N>() of formulas; an operation on two would have nowhere to be written.
  throw std::logic_error("formula: an operation on constants only");
}

Symbol infix(const Symbol& a, const char* operation, const Symbol& b) {
  Statements& in = statements_of({&a, &b});
  return {in, in.declare("real", fmt::format("{} {} {}", a.written(in), operation, b.written(in)))};
}

Symbol call(const char* function, const Symbol& x) {
  Statements& in = statements_of({&x});
  return {in, in.declare("real", fmt::format("{}({})", function, x.written(in)))};
}

}  // namespace

std::string Statements::literal(double number) const {
  const bool narrow = precision_ == Precision::narrow;
  const double rounded = narrow ? static_cast<double>(static_cast<float>(number)) : number;
  if (!std::isfinite(rounded))
    throw std::logic_error(fmt::format("formula: the constant {} leaves the range of its type", number));
  std::string digits = fmt::format("{:.{}g}", rounded, narrow ? 9 : 17);
  if (digits.find_first_of(".e") == std::string::npos) digits += ".0";
  if (narrow) digits += "f";
  return rounded < 0 ? "(" + digits + ")" : digits;
}

std::string Statements::declare(const char* type, const std::string& value) {
  std::string name = fmt::format("{}{}", prefix_, declared_++);
  text_ += fmt::format("const {} {} = {};\n", type, name, value);
  return name;
}

Symbol operator+(const Symbol& a, const Symbol& b) { return infix(a, "+", b); }
Symbol operator-(const Symbol& a, const Symbol& b) { return infix(a, "-", b); }
Symbol operator*(const Symbol& a, const Symbol& b) { return infix(a, "*", b); }
Symbol operator/(const Symbol& a, const Symbol& b) { return infix(a, "/", b); }
Symbol operator-(const Symbol& a) { return call("-", a); }
Symbol root(const Symbol& x) { return call("sqrt", x); }
Symbol exponential(const Symbol& x) { return call("exp", x); }
Symbol exponential_less_one(const Symbol& x) { return call("expm1", x); }
Symbol hyperbolic_sine(const Symbol& x) { return call("sinh", x); }
Symbol hyperbolic_cosine(const Symbol& x) { return call("cosh", x); }
Symbol magnitude(const Symbol& x) { return call("fabs", x); }

Symbol angle(const Symbol& y, const Symbol& x) {
  Statements& in = statements_of({&y, &x});
  return {in, in.declare("real", fmt::format("atan2({}, {})", y.written(in), x.written(in)))};
}

Symbol fused(const Symbol& a, const Symbol& b, const Symbol& c) {
  Statements& in = statements_of({&a, &b, &c});
  return {in,
          in.declare("real", fmt::format("fma({}, {}, {})", a.written(in), b.written(in), c.written(in)))};
}

Symbol at_least(const Symbol& low, const Symbol& x) { return choose(is_less(x, low), low, x); }

Condition is_less(const Symbol& a, const Symbol& b) {
  Statements& in = statements_of({&a, &b});
  return {in, in.declare("int", fmt::format("{} < {}", a.written(in), b.written(in)))};
}

Condition both(const Condition& a, const Condition& b) {
  Statements& in = *a.statements();
  return {in, in.declare("int", fmt::format("{} && {}", a.name(), b.name()))};
}

Symbol choose(const Condition& condition, const Symbol& yes, const Symbol& no) {
  Statements& in = *condition.statements();
  return {in,
          in.declare("real", fmt::format("{} ? {} : {}", condition.name(), yes.written(in), no.written(in)))};
}

double epsilon_of(const Symbol& x) {
  return statements_of({&x}).precision() == Precision::narrow ? std::numeric_limits<float>::epsilon()
                                                              : std::numeric_limits<double>::epsilon();
}

Symbol polynomial(const Coefficients& of, const Symbol& t) {
  const bool narrow = t.statements()->precision() == Precision::narrow;
  const std::size_t count = narrow ? of.narrow_count : of.wide_count;
  const auto coefficient = [&](std::size_t k) {
    return narrow ? static_cast<double>(of.narrow[k]) : of.wide[k];
  };
  Symbol sum = coefficient(count - 1);
  for (std::size_t k = count - 1; k-- > 0;) sum = fused(sum, t, coefficient(k));
  return sum;
}

}  // namespace widelimit::numerics::formula
