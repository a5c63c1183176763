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

/// The largest share of an input's variance, and of its NTK, that leading directions may leave out. A pair's value
/// then errs by no more than this share of the geometric mean of both inputs' own values.
template <typename Scalar>
inline constexpr double largest_tail = 0;
template <>
inline constexpr double largest_tail<float> = 1e-7;
template <>
inline constexpr double largest_tail<double> = 1e-13;

/// The most directions that are kept of an input of d positions; 0 where the exact product costs no more.
Index most_directions(Index d);

/// The numbers that an input of d positions keeps beside Z; 0 if it keeps no directions.
Index leading_size(Index d);

/// A view of what is kept of an input. The tails are computed, not estimated, up to rounding. With a norm behind the
/// attention they are bounds (write_normed_outputs()).
template <typename Scalar>
struct LeadingOutputs {
  Index rank = 0;                      ///< 0 if few directions leave out too much.
  double nngp_tail = 0;                ///< The share of tr Z V Z^T left out.
  double ntk_tail = 0;                 ///< The share of the NTK's trace left out.
  const Scalar* directions = nullptr;  ///< U [d, rank]
  const Scalar* outputs = nullptr;     ///< Y^T [d, rank]
};

/// Reads the view from leading_size(d) numbers that one of the functions below wrote.
template <typename Scalar>
LeadingOutputs<Scalar> leading_outputs(const Scalar* numbers, Index d);

/// Symmetric matrices [d, d] of an input with itself, and its Z.
template <typename Scalar>
struct OwnOutputs {
  const Scalar* weights;  ///< Z
  const Scalar* nngp;     ///< V
  const Scalar* ntk;      ///< T_V + 2 V: Z (T_V + 2 V) Z^T is the NTK after attention
  Index d;
  StopRequest stop{};
  const Scalar* scales = nullptr;  ///< s [d] or null; with s, Z = diag(s) weights
};

/// Searches the leading directions of an input by blocks of random signs of a fixed seed, and writes them to
/// `numbers` [leading_size(d)]. They are as few as leave out no more than largest_tail of both kernels; if there
/// would be too many, none are written. Signs that are independent of the directions estimate what these leave out;
/// in the end it is computed. About 10 r d^2 + 1.25 d^3 operations.
template <typename Scalar>
void write_leading_outputs(const OwnOutputs<Scalar>& own, Scalar* numbers);

/// Writes a rank of 0, so that pairs with this input take the exact product.
template <typename Scalar>
void write_no_leading_outputs(Scalar* numbers);

/// Leading outputs of attention with a norm after it. The norm needs diag(A V A^T), which exactly is another product
/// of d^3 operations; the leading outputs give it as a by-product.
template <typename Scalar>
struct NormedOutputs {
  Vector<Scalar> variances;     ///< diag A V A^T, [d]; what the directions leave out is missing.
  Vector<Scalar> scales;        ///< s, near variances^(-1/2); the directions are those of diag(s) A.
  std::vector<Scalar> numbers;  ///< What leading_outputs() reads, [leading_size(d)].
};

/// Searches leading outputs where Z = diag(p) A but p is not known yet, only that it is nearly in proportion to the
/// inverse standard deviations of the outputs, as a norm makes it. `own.weights` is A. Nothing is returned if there
/// would be too many directions.
template <typename Scalar>
std::optional<NormedOutputs<Scalar>> normed_outputs(const OwnOutputs<Scalar>& own);

/// Writes what was found to `numbers` for Z = Q diag(weights) A, with the rotation Q of position_rotation.hpp. Returns
/// false, having written nothing, if the weights are so far from proportional to the scales that the tails might be
/// too large.
template <typename Scalar>
bool write_normed_outputs(const NormedOutputs<Scalar>& found, const Vector<Scalar>& weights, Scalar* numbers);

/// The two inputs of a pair; both have leading outputs.
template <typename Scalar>
struct LeadingPair {
  LeadingOutputs<Scalar> left;
  LeadingOutputs<Scalar> right;
  const Scalar* left_weights;   ///< Z [d, d]
  const Scalar* right_weights;  ///< Z' [d, d]
  Index d;
};

/// The numbers of scratch that leading_weights() needs for inputs of d positions.
Index leading_scratch(Index d);

/// Writes W [d, d] of a pair, by the product of few rows above.
template <typename Scalar>
void leading_weights(const LeadingPair<Scalar>& pair, Scalar* scratch, Scalar* weights);

}  // namespace widelimit
