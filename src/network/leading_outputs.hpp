#pragma once

#include <optional>
#include <vector>

#include "widelimit/matrix.hpp"
#include "widelimit/network/shape.hpp"
#include "widelimit/stop_request.hpp"

/// Attention before a readout gives outputs F = Z Phi [d, channels] whose covariance Z V Z^T (V = Phi Phi^T, Z the
/// weights with the readout's factors) is nearly of low rank. With U the leading directions of each input's own
/// outputs, P = U U^T,
///     <F, F'> = <P F, F'> + <F, P' F'> - <P F, P' F'> + <(1 - P) F, (1 - P') F'>,
/// and leaving the last term out costs no more than the root of the product of both tails |(1 - P) F|^2. The weights of
/// the pair's covariance are then a product of few rows: with Y = U^T Z,
///     W = Z^T Z'  ~  [Y; U'^T Z]^T [U^T Z' - (U^T U') Y'; Y'],
/// about 4 r d^2 operations where Z^T Z' takes d^3. The NNGP and the NTK share W.
namespace widelimit {

/// Largest share of an input's variance, and of its NTK, that leading directions may leave out.
template <typename Scalar>
inline constexpr double largest_tail = 0;
template <>
inline constexpr double largest_tail<float> = 1e-7;
template <>
inline constexpr double largest_tail<double> = 1e-13;

/// Directions kept of an input of d positions at most; 0 where the exact product costs no more.
Index most_directions(Index d);

/// Numbers kept of an input of d positions beside Z.
Index leading_size(Index d);

/// What is kept of an input.
template <typename Scalar>
struct LeadingOutputs {
  Index rank = 0;        ///< 0: the tail is too large for few directions.
  double nngp_tail = 0;  ///< Share of tr Z V Z^T left out, at most; known up to its sampling error.
  double ntk_tail = 0;   ///< The same of the NTK.
  const Scalar* directions = nullptr;  ///< U [d, rank]
  const Scalar* outputs = nullptr;     ///< Y^T [d, rank]
};

/// A view of leading_size(d) numbers that were written.
template <typename Scalar>
LeadingOutputs<Scalar> leading_outputs(const Scalar* numbers, Index d);

/// Symmetric matrices [d, d] of an input with itself, and its Z.
template <typename Scalar>
struct OwnOutputs {
  const Scalar* weights;  ///< Z
  const Scalar* nngp;     ///< V
  const Scalar* ntk;      ///< T_V + 2 V, whose outputs are the NTK after attention.
  Index d;
  StopRequest stop{};
  const Scalar* scales = nullptr;  ///< Of Z's rows [d], where `weights` is Z without them.
};

/// Searches the leading directions, by blocks of random signs of a fixed seed, and writes them to `numbers`
/// [leading_size(d)]: as few as leave out no more than largest_tail of both kernels, or none. The tails are measured by
/// signs that the directions do not know, four standard errors added. About 10 r d^2 operations.
template <typename Scalar>
void write_leading_outputs(const OwnOutputs<Scalar>& own, Scalar* numbers);

/// Writes that there are none.
template <typename Scalar>
void write_no_leading_outputs(Scalar* numbers);

/// Leading outputs of attention with a norm after it, whose scales
/// follow from them: diag A V A^T is d^3 operations too.
template <typename Scalar>
struct NormedOutputs {
  Vector<Scalar> variances;  ///< diag A V A^T, [d]; what the directions leave out is missing.
  Vector<Scalar> scales;  ///< Near variances^(-1/2); the directions are those of the rows of diag(scales) A.
  std::vector<Scalar> numbers;  ///< [leading_size(d)]
};

/// The same search where Z = diag(p) A is known but for p, which is nearly in proportion to the standard deviations'
/// inverses. `own.weights` is A. Null if there are too many directions.
template <typename Scalar>
std::optional<NormedOutputs<Scalar>> normed_outputs(const OwnOutputs<Scalar>& own);

/// Writes what was found to `numbers`, for Z = diag(weights) A. False if the weights are so far from proportional that
/// tails might be too large.
template <typename Scalar>
bool write_normed_outputs(const NormedOutputs<Scalar>& found, const Vector<Scalar>& weights, Scalar* numbers);

/// The two inputs of a pair; both have leading outputs.
template <typename Scalar>
struct LeadingPair {
  LeadingOutputs<Scalar> left;
  LeadingOutputs<Scalar> right;
  const Scalar* left_weights;   ///< Z [d, d]
  const Scalar* right_weights;  ///< Z' [e, e]; e = d.
  Index d;
};

/// Numbers of scratch that leading_weights() needs for inputs of d positions.
Index leading_scratch(Index d);

/// W [d, d] of a pair.
template <typename Scalar>
void leading_weights(const LeadingPair<Scalar>& pair, Scalar* scratch, Scalar* weights);

}  // namespace widelimit
