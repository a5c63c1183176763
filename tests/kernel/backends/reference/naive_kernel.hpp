#pragma once

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kernel/backends/reference/naive_activations.hpp"
#include "kernel/backends/reference/naive_windows.hpp"
#include "widelimit/matrix.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/network/shape.hpp"

/// The kernels straight from their formulas: whole d x d' matrices, loops over all positions, long double,
/// driven by the network file's fields. Shares nothing with the engine; slow, for small networks only.
namespace widelimit::testing {

using RealMatrix = Matrix<Real>;

/// Nngp and ntk of a pair of inputs at some layer.
struct NaivePair {
  RealMatrix k;
  RealMatrix t;
  bool same_input;
};

/// A group of channels with the pairs (x, x), (x, x'), (x', x').
struct NaiveGroup {
  Real share;
  NaivePair left, cross, right;
};

struct NaiveState {
  std::array<Shape, 2> shapes;     ///< Of x and x'.
  std::vector<NaiveGroup> groups;  ///< One, except after a concatenation.
  std::array<RealMatrix, 2> adjacency = {};
  std::array<NaiveMask, 2> masks = {};  ///< Of x and x'; all positions count of inputs without masks.
};

/// A raw input, [d, C] for the d positions of its shape.
struct NaiveInput {
  Shape shape;
  RealMatrix features;        ///< 0 at masked positions.
  RealMatrix adjacency = {};  ///< Of its graph, [source, target], if it carries one.
  NaiveMask mask = {};        ///< Empty: all positions count.
};

/// After this layer no position of one input, x (0) or x' (1), is left.
struct NoPositionLeft {
  std::string path;
  std::size_t side;
};

struct NaiveValues {
  Real nngp;
  Real ntk;
  Real largest_variance;   ///< Of the two inputs after any layer.
  Real smallest_variance;  ///< The same, of those above 0.
  /// How many nonlinearities with a kink or a jump met different positions that are perfectly correlated.
  int perfectly_correlated = 0;
  /// Whether an NTK other than 0 came to a nonlinearity where a variance is 0.
  bool tangent_at_zero = false;
};

/// Errors of about `size` standard deviations of what stands at two positions, added to their covariances and tangents
/// after every layer: what an engine of this precision makes of a network. Equal seeds give equal errors.
struct NaiveRoundings {
  Real size = 0;
  unsigned seed = 0;
};

class NaiveKernel {
 public:
  explicit NaiveKernel(const Network& network);

  /// Of two inputs, of equal shape or not; `same_input` if they are one and the same. Throws NoPositionLeft.
  [[nodiscard]] NaiveValues operator()(const NaiveInput& left, const NaiveInput& right, bool same_input,
                                       const NaiveRoundings& roundings = {}) const;

 private:
  nlohmann::json layers_;
};

}  // namespace widelimit::testing
