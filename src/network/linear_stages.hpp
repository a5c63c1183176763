#pragma once

#include <memory>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"

/// What lowering knows of stages that are linear in the covariance of a pair once the states of both inputs
/// are given: readouts can be pulled back through them (pull_back.hpp).
namespace widelimit {

/// A row stage with K'_ab = r_a K_ab r'_b and T'_ab = r_a T_ab r'_b, where r is its only auxiliary array. Norms are
/// such stages.
class ScalingStage {
 public:
  virtual ~ScalingStage() = default;
};

/// A row stage without auxiliary arrays with
///
///     K' = w K + b,   T' = w T + g K + c.
class AffineEntryStage {
 public:
  virtual ~AffineEntryStage() = default;

  struct Entries {
    double weight, bias;      ///< w, b
    double in_ntk, ntk_bias;  ///< g, c
  };
  [[nodiscard]] virtual Entries entries() const = 0;
};

/// 1/width attention (docs/theory/attention.md, section 2): a pair stage that leaves shapes as they are, with
///
///     K' = f A V A'^T + b,   T' = f A (T_V + 2 V) A'^T + b,   V = w K + R,   T_V = w T + R,
///
/// where A [d, d], row by row, is its state of an input, and R comes from encodings in the values.
class SandwichStage {
 public:
  virtual ~SandwichStage() = default;

  struct Form {
    double factor;        ///< f
    double bias;          ///< b
    double input_weight;  ///< w
  };
  [[nodiscard]] virtual Form form() const = 0;

  /// Whether R is not 0.
  [[nodiscard]] virtual bool has_value_positions() const = 0;
  /// R between inputs of these shapes, [d, d'], or null if R is 0.
  [[nodiscard]] virtual std::shared_ptr<const Matrix<double>> value_positions(const Shape& left,
                                                                              const Shape& right) const = 0;
};

}  // namespace widelimit
