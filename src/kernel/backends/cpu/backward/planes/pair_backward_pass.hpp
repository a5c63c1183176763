#pragma once

#include <memory>
#include <vector>

#include "kernel/backends/cpu/backward/planes/chain_backward_pass.hpp"
#include "kernel/backends/cpu/backward/planes/entry_gathering.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// NNGP and NTK of one pair, or their adjoints.
template <typename Scalar>
struct KernelValues {
  Scalar nngp = 0;
  Scalar ntk = 0;
};

/// What happens to the positions of a block of pairs of inputs of two shapes: the steps that
/// planes/plane_executor.hpp executes, from the inputs to the readouts, and backward from there. A thread has one for
/// each pair of shapes.
///
/// Kept nodes are whole matrices here, not the planes that are demanded of them (planes/store_layout.hpp), because
/// adjoints are added to them from any offset. Readouts are summed plane by plane. Their rounding differs from that
/// of planes/readout_sums.hpp, which does not matter to derivatives.
template <typename Scalar>
class PairBackwardPass {
 public:
  /// Program and geometry must outlive the pass.
  PairBackwardPass(const Program& program, const PairGeometry& geometry, BackwardScope scope);

  /// A forward pass computes all kept nodes, and the readouts unless they are skipped. While inputs are recorded, it
  /// also fills the variances and states of their records, but for chains that end at readouts which are skipped.
  enum class Readouts { wanted, skipped };
  void forward(const PairBlock<Scalar>& block, Readouts readouts, const StopRequest& stop);

  /// Adds to the adjoints of the inputs' records. It must follow forward() of the same block.
  void backward(const PairBlock<Scalar>& block, const StopRequest& stop);

  /// Whether backward() met more entries near ties than float has digits for (ChainBackwardPass::is_near_ties()).
  [[nodiscard]] bool is_near_ties() const;

  /// The readout of a pair of the block, after forward().
  [[nodiscard]] const KernelValues<Scalar>& readout(std::size_t pair, NodeId node) const {
    return pairs_[pair].readouts[node];
  }
  /// Sets the adjoint of a pair's readout, before backward().
  void set_readout_adjoint(std::size_t pair, NodeId node, const KernelValues<Scalar>& adjoint) {
    make_room(pair + 1);
    pairs_[pair].readout_adjoints[node] = adjoint;
  }

 private:
  /// The readouts of one pair.
  struct PairReadouts {
    std::vector<KernelValues<Scalar>> readouts;          ///< [node]
    std::vector<KernelValues<Scalar>> readout_adjoints;  ///< [node]
  };

  [[nodiscard]] const Node& node(NodeId id) const { return program_.graph.nodes[id]; }
  /// Makes kept nodes and readouts for at least so many pairs.
  void make_room(std::size_t pairs);

  void forward(std::size_t step, const PlaneStep& plane, const PairBlock<Scalar>& block,
               const StopRequest& stop);
  void forward(const PairStep& pair, const PairBlock<Scalar>& block, std::size_t number,
               const StopRequest& stop);
  void backward(std::size_t step, const PlaneStep& plane, const PairBlock<Scalar>& block,
                const StopRequest& stop);
  void backward(const PairStep& pair, const PairBlock<Scalar>& block, std::size_t number,
                const StopRequest& stop);
  void forward(const InputStep& input, const PairBlock<Scalar>& block, std::size_t number);
  void backward(const InputStep& input, const PairBlock<Scalar>& block, std::size_t number);
  /// put() adds or writes a plane of a chain's root to its target, for one pair; take_adjoint() is its transpose.
  void put(NodeId target, const PlacedPlane& at, const Plane<Scalar>& plane, std::size_t pair);
  void put_readout(NodeId target, const PlacedPlane& at, const Plane<Scalar>& plane, std::size_t pair);
  void take_adjoint(NodeId target, const PlacedPlane& at, const Plane<Scalar>& adjoint,
                    std::size_t pair) const;
  [[nodiscard]] PairView<Scalar> view(NodeId id, const PairBlock<Scalar>& block, std::size_t number,
                                      const StopRequest& stop);
  /// Calls body() with the view of the input that is recorded with itself, before a stage.
  template <typename Body>
  void with_self_view(NodeId id, const PairBlock<Scalar>& block, const StopRequest& stop, const Body& body);

  const Program& program_;
  const PairGeometry& geometry_;
  bool with_ntk_;
  std::vector<std::unique_ptr<EntryGathering>> gathering_;          ///< [node]; null if it gathers nothing.
  std::vector<std::unique_ptr<ChainBackwardPass<Scalar>>> chains_;  ///< [step]; null for other steps.
  std::vector<PairReadouts> pairs_;                                 ///< [pair of the block]
  KeptNodes<Scalar> kept_;                                          ///< [pair of the block][node]
  std::vector<Scalar> scratch_;                                     ///< Memory that a pair stage asks for.
};

}  // namespace widelimit
