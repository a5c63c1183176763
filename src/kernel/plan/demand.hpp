#pragma once

#include <array>
#include <vector>

#include "kernel/plan/geometry.hpp"
#include "network/graph.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

/// A network demands more offsets between positions than can be planned for.
class TooManyOffsets : public NetworkError {
 public:
  using NetworkError::NetworkError;
};

/// The most offsets of a pair at a layer, those of images of 1024 x 1024, and along an axis, those of
/// sequences of half a million tokens: they are listed one by one.
inline constexpr double most_offsets = 0x1p22, most_offsets_of_axis = 0x1p20;

/// A set of offsets: the product of one sorted set an axis. Empty: nothing is demanded.
struct Offsets {
  std::array<std::vector<Index>, 3> axis;

  [[nodiscard]] bool empty() const { return axis[0].empty(); }
  [[nodiscard]] Index count() const;
  [[nodiscard]] bool is_zero_only() const;
  [[nodiscard]] bool contains(const Index3& offset) const;
  /// Which entries they are of a pair's matrix between inputs of these sizes, for pair stages, who know two
  /// sets only: offset 0 is a matrix's diagonal where equal positions have equal numbers.
  [[nodiscard]] Entries entries(const Index3& left, const Index3& right) const {
    return is_zero_only() && numbers_agree(left, right) ? Entries::diagonal : Entries::all;
  }

  /// Calls body(offset) for each, the last axis fastest.
  template <typename Body>
  void for_each(const Body& body) const {
    for (const Index x : axis[0])
      for (const Index y : axis[1])
        for (const Index z : axis[2]) body(Index3{x, y, z});
  }

  static Offsets zero();
  /// How many offsets there are between positions of two inputs.
  static double count_all(const Index3& left, const Index3& right);
  /// These offsets. Throws TooManyOffsets.
  static Offsets all(const Index3& left, const Index3& right);
  /// The smallest product set that holds both.
  void unite(const Offsets& other);

  friend bool operator==(const Offsets&, const Offsets&) = default;
};

/// Shapes of every node for one pair of inputs, as three axes.
struct PairShapes {
  std::vector<Shape> left;
  std::vector<Shape> right;
};

/// Which offsets the i-th input of a node must deliver for the wanted offsets of its output (architecture:
/// "demand").
Offsets input_offsets(const Graph& graph, NodeId id, std::size_t input, const Offsets& wanted,
                      const PairShapes& shapes);

/// How the pair is used: to compute the result, or an input with itself to compute its state.
enum class Purpose { result, state };

/// The offsets demanded of every node; a node without positions is demanded if its set is not empty. For the
/// state, every node whose variances are needed delivers offset 0. Throws TooManyOffsets, naming the layer
/// that asks for them.
std::vector<Offsets> demanded_offsets(const Graph& graph, const PairShapes& shapes, Purpose purpose);

/// The same with every offset of every demanded node.
std::vector<Offsets> every_offset(const Graph& graph, const PairShapes& shapes,
                                  std::vector<Offsets> demanded);

/// True if the node keeps something of the variances of its input.
bool needs_variances(const Operation& operation);

}  // namespace widelimit
