#pragma once

#include <array>
#include <vector>

#include "kernel/plan/geometry.hpp"
#include "network/graph.hpp"
#include "widelimit/error.hpp"

namespace widelimit {

class PlaneMapping;

/// A network demands more offsets between positions than can be planned for.
class TooManyOffsets : public NetworkError {
 public:
  using NetworkError::NetworkError;
};

/// Offsets are listed one by one, so their number is bounded: 2^22 for a pair at one layer, as images of 1024 x 1024
/// have, and 2^20 along one axis, as sequences of half a million tokens have.
inline constexpr double most_offsets = 0x1p22, most_offsets_of_axis = 0x1p20;

/// A set of offsets: the product of one sorted set for each axis. It is empty if nothing is demanded.
struct Offsets {
  std::array<std::vector<Index>, 3> axis;

  [[nodiscard]] bool empty() const { return axis[0].empty(); }
  [[nodiscard]] Index count() const;
  [[nodiscard]] bool is_zero_only() const;
  [[nodiscard]] bool contains(const Index3& offset) const;
  /// The entries of a pair's matrix that these offsets are, as pair stages know them: the diagonal or all. Offset 0
  /// is the matrix's diagonal only if equal positions have equal numbers in inputs of these sizes.
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
  /// All offsets between positions of two inputs. Throws TooManyOffsets.
  static Offsets all(const Index3& left, const Index3& right);
  /// Enlarges this to the smallest product set that contains both.
  void unite(const Offsets& other);

  friend bool operator==(const Offsets&, const Offsets&) = default;
};

/// The shapes after every node, for one pair of inputs.
struct PairShapes {
  std::vector<Shape> left;
  std::vector<Shape> right;
};

/// Offsets that are wanted of a node, and what one of its inputs must deliver for them: primitives (primitives.hpp) say
/// which of these they need.
class InputDemand {
 public:
  /// Everything must outlive this.
  InputDemand(const Graph& graph, NodeId id, std::size_t input, const Offsets& wanted,
              const PairShapes& shapes);

  [[nodiscard]] const Offsets& wanted() const { return wanted_; }
  /// The entries that are wanted, as pair stages know them.
  [[nodiscard]] Entries wanted_entries() const;

  [[nodiscard]] Offsets all() const;
  /// The entries with equal numbers: offset 0 if that is what they are, or else all.
  [[nodiscard]] Offsets diagonal() const;
  /// What equal taps of a window read for the wanted offsets, or for others.
  [[nodiscard]] Offsets through(const Window& window) const { return through(window, wanted_); }
  [[nodiscard]] Offsets through(const Window& window, const Offsets& wanted) const;
  /// What all pairs of taps of a window read.
  [[nodiscard]] Offsets pooled(const Window& window) const;
  [[nodiscard]] Offsets mapped(const PlaneMapping& mapping) const;

 private:
  const Offsets& wanted_;
  const PairShapes& shapes_;
  NodeId id_;
  NodeId input_;
};

/// The offsets that input number `input` of a node must deliver for the wanted offsets of its output (docs/engine.md,
/// "Demand").
Offsets input_offsets(const Graph& graph, NodeId id, std::size_t input, const Offsets& wanted,
                      const PairShapes& shapes);

/// How the pair is used: to compute the result, or an input with itself to compute its state.
enum class Purpose { result, state };

/// The offsets demanded of every node; a node without positions is demanded if its set is not empty. For the
/// state, every node whose variances are needed delivers offset 0. Throws TooManyOffsets, naming the layer
/// that asks for them.
std::vector<Offsets> demanded_offsets(const Graph& graph, const PairShapes& shapes, Purpose purpose);

/// Replaces the set of every demanded node by all its offsets.
std::vector<Offsets> every_offset(const Graph& graph, const PairShapes& shapes,
                                  std::vector<Offsets> demanded);

}  // namespace widelimit
