#pragma once

#include <string>

#include "widelimit/numerics/formula/number.hpp"

namespace widelimit::numerics::formula {

enum class Precision { narrow, wide };

/// The statements that a formula becomes: each operation is one line that declares a constant of type `real`. The text
/// is OpenCL C, and C with the functions that OpenCL has.
class Statements {
 public:
  /// Names of constants begin with `prefix`.
  Statements(Precision precision, std::string prefix) : precision_{precision}, prefix_{std::move(prefix)} {}

  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// A number as it is written in this precision. Throws NumericalError for one that is infinite there, or none.
  [[nodiscard]] std::string literal(double number) const;
  /// Declares a constant of a type with this value, and returns its name.
  std::string declare(const char* type, const std::string& value);

 private:
  Precision precision_;
  std::string prefix_;
  std::string text_;
  int declared_ = 0;
};

/// A number that is only known as text: a name, or a constant. Arithmetic on it writes statements; on constants, and
/// with the constants 0 and 1 where they leave nothing to compute, it is done at once.
class Symbol {
 public:
  Symbol(double number) : number_{number} {}  // NOLINT: constants of formulas are numbers
  Symbol(Statements& statements, std::string name) : statements_{&statements}, name_{std::move(name)} {}

  /// Null for a constant.
  [[nodiscard]] Statements* statements() const { return statements_; }
  /// Whether it is a constant of this size.
  [[nodiscard]] bool is(double number) const { return statements_ == nullptr && number_ == number; }
  /// The number of a constant.
  [[nodiscard]] double number() const { return number_; }
  /// How other statements write it.
  [[nodiscard]] std::string written(const Statements& in) const {
    return statements_ == nullptr ? in.literal(number_) : name_;
  }

 private:
  Statements* statements_ = nullptr;
  std::string name_;
  double number_ = 0;
};

/// The answer to a comparison.
class Condition {
 public:
  Condition(Statements& statements, std::string name) : statements_{&statements}, name_{std::move(name)} {}
  [[nodiscard]] Statements* statements() const { return statements_; }
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  Statements* statements_;
  std::string name_;
};

Symbol operator+(const Symbol& a, const Symbol& b);
Symbol operator-(const Symbol& a, const Symbol& b);
Symbol operator*(const Symbol& a, const Symbol& b);
Symbol operator/(const Symbol& a, const Symbol& b);
Symbol operator-(const Symbol& a);
Symbol root(const Symbol& x);
Symbol exponential(const Symbol& x);
Symbol exponential_less_one(const Symbol& x);
Symbol logarithm(const Symbol& x);
Symbol sine(const Symbol& x);
Symbol cosine(const Symbol& x);
Symbol hyperbolic_sine(const Symbol& x);
Symbol hyperbolic_tangent(const Symbol& x);
Symbol error_function(const Symbol& x);
Symbol angle(const Symbol& y, const Symbol& x);
Symbol magnitude(const Symbol& x);
Symbol fused(const Symbol& a, const Symbol& b, const Symbol& c);
Symbol at_least(const Symbol& low, const Symbol& x);
Condition is_less(const Symbol& a, const Symbol& b);
Condition both(const Condition& a, const Condition& b);
Symbol choose(const Condition& condition, const Symbol& yes, const Symbol& no);
double epsilon_of(const Symbol& x);

}  // namespace widelimit::numerics::formula
