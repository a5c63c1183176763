#pragma once

#include <memory>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/numerics/activation.hpp"
#include "widelimit/numerics/formula/row_formula.hpp"

namespace widelimit {

/// 1/sqrt(width) attention by the dual activation of its weights (docs/theory/attention.md, section 3), as it can be
/// computed elsewhere: a pair stage that leaves shapes as they are, with the sums over (i, j) of its entries (a, b),
///
///     K~ = w K + R,   V = K~ or K,   S = f sum V_ij E_ij,   K' = S + b,
///     T' = 2 S + b + f sum T_V,ij E_ij + f qk^2 ((2 K~_ab + T~_ab) sum V_ij K~_ij D_ij + K~_ab sum V_ij T~_ij D_ij)
///
/// where E and D are the dual of the logits and its slope. The variances of the biases of queries and keys are added to
/// K~_ab and K~_ij. Its state of an input begins with the variances K~_aa, unless the weights are the logits.
class DualAttentionStage {
 public:
  virtual ~DualAttentionStage() = default;

  struct Form {
    double factor, bias;          ///< f, b
    double query_key_square;      ///< qk^2
    double query_bias, key_bias;  ///< Variances.
    double input_weight;          ///< w, 1 without encodings
    bool encodes_values;          ///< Whether V = K~.
    bool has_encodings;           ///< Whether there is R.
    bool is_identity;             ///< The weights are the logits: E is their covariance, D = 1.
    bool is_homogeneous;          ///< Deviations are factors of the weights.
    /// (n + p)^2 / 2 for homogeneous weights with the slopes n and p: what E[u v] counts for in the sums of a
    /// correlation less those of its opposite.
    double mirror;
    bool sees_everything;  ///< Whether all positions see all.
    bool turns;            ///< Whether K~_ij and T~_ij are multiplied by rho((i - a) - (j - b)).
  };
  [[nodiscard]] virtual Form form() const = 0;

  /// The nonlinearity of the weights.
  [[nodiscard]] virtual const numerics::ActivationPtr& weights() const = 0;
  /// The dual; null if it cannot be read.
  [[nodiscard]] virtual numerics::formula::RowFormulaPointer dual() const = 0;
  /// R between inputs of these shapes, [d, d'], or null if there are no encodings.
  [[nodiscard]] virtual std::shared_ptr<const Matrix<double>> encodings(const Shape& left,
                                                                        const Shape& right) const = 0;
  /// Whether position a sees position c.
  [[nodiscard]] virtual bool sees_position(Index a, Index c) const = 0;
  /// rho(0), ..., rho(reach).
  [[nodiscard]] virtual std::vector<double> turns(Index reach) const = 0;
};

}  // namespace widelimit
