#include "widelimit/numerics/formula/symbol.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <stdexcept>
#include <utility>

#include "widelimit/error.hpp"

namespace widelimit::numerics::formula {
namespace {

Statements& statements_of(std::initializer_list<const Symbol*> symbols) {
  for (const Symbol* symbol : symbols)
    if (symbol->statements() != nullptr) return *symbol->statements();
  // Comparisons of constants are the only operations on them that are not done at once.
  throw std::logic_error("formula: a comparison of constants");
}

bool are_constants(std::initializer_list<const Symbol*> symbols) {
  return std::ranges::all_of(symbols, [](const Symbol* symbol) { return symbol->statements() == nullptr; });
}

Symbol operation(const char* does, std::initializer_list<const Symbol*> symbols) {
  Statements& in = statements_of(symbols);
  std::vector<std::string> operands;
  for (const Symbol* symbol : symbols) operands.push_back(symbol->written(in));
  return {in, in.declare("real", does, std::move(operands))};
}

Symbol call(const char* function, const Symbol& x, double (*of_constants)(double)) {
  if (are_constants({&x})) return of_constants(x.number());
  return operation(function, {&x});
}

/// An operation as C writes it.
std::string written(const std::string& does, const std::vector<std::string>& operands) {
  if (does == "?:") return fmt::format("{} ? {} : {}", operands[0], operands[1], operands[2]);
  const bool is_word = does.front() >= 'a' && does.front() <= 'z';
  if (is_word || operands.size() == 1) return fmt::format("{}({})", does, fmt::join(operands, ", "));
  return fmt::format("{} {} {}", operands[0], does, operands[1]);
}

/// A divisor that is so close to 0 that it becomes 0.
void require_divisor(double number, Precision precision) {
  if (precision == Precision::narrow && number != 0 && static_cast<float>(number) == 0)
    throw NumericalError(fmt::format("the divisor {}, made of its parameters, is 0 in float", number));
}

}  // namespace

std::string Statements::literal(double number) const {
  const bool narrow = precision_ == Precision::narrow;
  const double rounded = narrow ? static_cast<double>(static_cast<float>(number)) : number;
  const char* const type = narrow ? "float" : "double";
  if (std::isnan(number)) throw NumericalError("a constant made of its parameters is not a number");
  if (!std::isfinite(rounded))
    throw NumericalError(
        fmt::format("the constant {}, made of its parameters, is beyond the range of {}", number, type));
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

std::string Statements::declare(const char* type, const char* does, std::vector<std::string> operands) {
  std::string name = declare(type, formula::written(does, operands));
  operations_.push_back({name, does, std::move(operands)});
  return name;
}

std::optional<Symbol> kept_part(const char* name, std::initializer_list<const Symbol*> arguments) {
  if (are_constants(arguments) || !statements_of(arguments).keeps_parts()) return std::nullopt;
  return operation(name, arguments);
}

Symbol operator+(const Symbol& a, const Symbol& b) {
  if (are_constants({&a, &b})) return a.number() + b.number();
  if (a.is(0)) return b;
  return b.is(0) ? a : operation("+", {&a, &b});
}
Symbol operator-(const Symbol& a, const Symbol& b) {
  if (are_constants({&a, &b})) return a.number() - b.number();
  if (a.is(0)) return -b;
  return b.is(0) ? a : operation("-", {&a, &b});
}
Symbol operator*(const Symbol& a, const Symbol& b) {
  if (are_constants({&a, &b})) return a.number() * b.number();
  if (a.is(0) || b.is(0)) return 0.0;
  if (a.is(1)) return b;
  return b.is(1) ? a : operation("*", {&a, &b});
}
Symbol operator/(const Symbol& a, const Symbol& b) {
  if (are_constants({&a, &b})) return a.number() / b.number();
  if (a.is(0)) return 0.0;
  if (b.statements() == nullptr) require_divisor(b.number(), statements_of({&a}).precision());
  return b.is(1) ? a : operation("/", {&a, &b});
}
Symbol operator-(const Symbol& a) {
  return call("-", a, [](double x) { return -x; });
}
Symbol root(const Symbol& x) { return call("sqrt", x, std::sqrt); }
Symbol exponential(const Symbol& x) { return call("exp", x, std::exp); }
Symbol exponential_less_one(const Symbol& x) { return call("expm1", x, std::expm1); }
Symbol logarithm(const Symbol& x) { return call("log", x, std::log); }
Symbol sine(const Symbol& x) { return call("sin", x, std::sin); }
Symbol cosine(const Symbol& x) { return call("cos", x, std::cos); }
Symbol hyperbolic_sine(const Symbol& x) { return call("sinh", x, std::sinh); }
Symbol hyperbolic_tangent(const Symbol& x) { return call("tanh", x, std::tanh); }
Symbol error_function(const Symbol& x) { return call("erf", x, std::erf); }
Symbol complementary_error_function(const Symbol& x) { return call("erfc", x, std::erfc); }
Symbol magnitude(const Symbol& x) { return call("fabs", x, std::fabs); }

Symbol angle(const Symbol& y, const Symbol& x) {
  if (are_constants({&y, &x})) return std::atan2(y.number(), x.number());
  return operation("atan2", {&y, &x});
}

Symbol fused(const Symbol& a, const Symbol& b, const Symbol& c) {
  if (a.is(0) || b.is(0)) return c;
  if (are_constants({&a, &b})) return Symbol(a.number() * b.number()) + c;
  return operation("fma", {&a, &b, &c});
}

Symbol at_least(const Symbol& low, const Symbol& x) {
  if (const auto part = kept_part("at_least", {&low, &x})) return *part;
  return choose(is_less(x, low), low, x);
}

Condition is_less(const Symbol& a, const Symbol& b) {
  Statements& in = statements_of({&a, &b});
  return {in, in.declare("int", "<", {a.written(in), b.written(in)})};
}

Condition both(const Condition& a, const Condition& b) {
  Statements& in = *a.statements();
  return {in, in.declare("int", "&&", {a.name(), b.name()})};
}

Symbol choose(const Condition& condition, const Symbol& yes, const Symbol& no) {
  if (yes.statements() == nullptr && no.is(yes.number())) return yes;
  Statements& in = *condition.statements();
  return {in, in.declare("real", "?:", {condition.name(), yes.written(in), no.written(in)})};
}

double epsilon_of(const Symbol& x) {
  return statements_of({&x}).precision() == Precision::narrow ? std::numeric_limits<float>::epsilon()
                                                              : std::numeric_limits<double>::epsilon();
}

}  // namespace widelimit::numerics::formula
