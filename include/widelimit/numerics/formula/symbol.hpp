#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "widelimit/numerics/formula/number.hpp"

namespace widelimit::numerics::formula {

enum class Precision { narrow, wide };

/// An operation of a formula: what `name` is. Operands are names and numbers.
struct Operation {
  std::string name;
  /// + - * / < && ?: or a function of OpenCL, or one that formulas share (Statements::keeps_parts()).
  std::string does;
  std::vector<std::string> operands;
};

/// The statements that a formula becomes: each operation is one line that declares a constant of type `real`. The text
/// is OpenCL C, and C with the functions that OpenCL has.
class Statements {
 public:
  /// Names of constants begin with `prefix`. With `keeps_parts` bounds, and the functions that formulas share
  /// (numerics/formula/arc.hpp), remain operations: for readers that know their slopes at perfect correlation.
  Statements(Precision precision, std::string prefix, bool keeps_parts = false)
      : precision_{precision}, prefix_{std::move(prefix)}, keeps_parts_{keeps_parts} {}

  [[nodiscard]] Precision precision() const { return precision_; }
  [[nodiscard]] bool keeps_parts() const { return keeps_parts_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  /// Those of the text, but for constants that were declared by their values.
  [[nodiscard]] const std::vector<Operation>& operations() const { return operations_; }
  /// A number as it is written in this precision. Throws NumericalError for one that is infinite there, or none.
  [[nodiscard]] std::string literal(double number) const;
  /// Declares a constant of a type with this value, and returns its name.
  std::string declare(const char* type, const std::string& value);
  /// Declares what an operation gives, and returns its name.
  std::string declare(const char* type, const char* does, std::vector<std::string> operands);

 private:
  Precision precision_;
  std::string prefix_;
  bool keeps_parts_;
  std::string text_;
  std::vector<Operation> operations_;
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
Symbol complementary_error_function(const Symbol& x);
Symbol angle(const Symbol& y, const Symbol& x);
Symbol magnitude(const Symbol& x);
Symbol fused(const Symbol& a, const Symbol& b, const Symbol& c);
Symbol at_least(const Symbol& low, const Symbol& x);
Condition is_less(const Symbol& a, const Symbol& b);
Condition both(const Condition& a, const Condition& b);
Symbol choose(const Condition& condition, const Symbol& yes, const Symbol& no);
double epsilon_of(const Symbol& x);

/// The value of a function that formulas share, as an operation; nothing where its own operations are wanted.
[[nodiscard]] std::optional<Symbol> kept_part(const char* name,
                                              std::initializer_list<const Symbol*> arguments);

}  // namespace widelimit::numerics::formula
