#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "widelimit/network/layer.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/network/shape.hpp"

/// Checks the properties that every layer must have, built-in or your own, in one line of a test,
/// `CHECK(check_laws(my_layer()).passed())`. The checker knows no kind of layer by name.
namespace widelimit {

/// One property and the result of its check.
struct LawRow {
  std::string law;
  bool passed;
  /// The largest deviation, or the first failure with the network and inputs for which it occurred.
  std::string detail;
  /// True if the layer lacks what the law is about: adjoints, which it may lack. It then counts as passed.
  bool absent = false;
};

/// The results for a layer or network.
struct LawReport {
  std::vector<LawRow> rows;

  /// True if every property holds.
  [[nodiscard]] bool passed() const;
};

/// A table with one line for each property.
[[nodiscard]] std::string to_string(const LawReport& report);

/// The inputs on which properties are checked, and the rounding that is allowed.
struct LawOptions {
  /// Shapes of inputs to try; those that the layer or network cannot take are left out. Keep them small.
  std::vector<Shape> shapes = {{}, {5}, {3, 2}, {2, 3, 2}};
  Index channels = 3;
  Index inputs =
      4;  ///< Random ones, at least 2; two of them are close. A duplicate, a constant and zeros are added.
  std::uint64_t seed = 0;           ///< Of the inputs.
  double double_tolerance = 1e-11;  ///< Rounding allowed in double, relative to the inputs' own kernels.
  double float_tolerance = 1e-4;    ///< Deviation of float from double allowed, likewise.
  /// Deviation of adjoints from differences, relative to the terms that they add up.
  double adjoint_tolerance = 1e-7;
};

/// Checks the layer after raw inputs, a dense layer in either parametrisation, a convolution with a nonlinearity
/// and a global average, and before a flatten and a global average readout (as far as the rules about which layer may
/// follow which allow each):
/// - exchange: gram(x, y) is the transpose of gram(y, x), within rounding;
/// - positive semidefinite: Gram matrices are, within rounding;
/// - demand: computing only what is needed gives what computing everything gives, within rounding;
/// - tiles and blocks: results do not depend on tile size or memory, bit for bit;
/// - threads: results do not depend on the number of threads and repeat, bit for bit;
/// - self: the covariance of an input with itself is its variances, position by position, and gram_diagonal
///   the diagonal of gram, bit for bit;
/// - precision: float agrees with double;
/// - finite: results are finite, also for an input of zeros;
/// - zero variance: at a position without variance, row stages give the limit for an uncorrelated position whose
///   variance goes to 0, in both kernels, if there is a limit;
/// - linear ntk: a stage that is linear in the covariances and has no weights of its own (StageRules::own_weights)
///   maps the NTK as it maps the NNGP: T = K gives T' = K';
/// - ties: row stages, and the duals of nonlinearities, do not jump where c reaches p = q;
/// - adjoints: row and pair stages that have a backward pass (has_adjoint()) agree with differences of themselves, at
///   pairs of inputs, at an input with itself and, row stages, at positions without variance. If a stage has none, the
///   row is `absent` and names it.
///
/// Throws NetworkError if the layer cannot be used with any of the shapes; ArgumentError for options out of
/// range. Cost: about twenty small Gram matrices for each network: milliseconds, or seconds for layers of slow
/// quadrature.
[[nodiscard]] LawReport check_laws(const Layer& layer, const LawOptions& options = {});

/// The same for a whole network with the shapes that it takes.
[[nodiscard]] LawReport check_laws(const Network& network, const LawOptions& options = {});

}  // namespace widelimit
