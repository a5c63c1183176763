#pragma once

#include <memory>
#include <vector>

#include "kernel/derivatives/entry_gathering.hpp"
#include "kernel/derivatives/run_walk.hpp"
#include "widelimit/network/pair_stage.hpp"

namespace widelimit {

/// NNGP and NTK of one pair, or their adjoints.
template <typename Scalar>
struct KernelValues {
  Scalar nngp = 0;
  Scalar ntk = 0;
};

/// What happens to the positions of a block of pairs of inputs of two shapes, from the inputs to the readouts and back.
template <typename Scalar>
class PairWalk {
 public:
  /// Program and geometry must outlive the walk.
  PairWalk(const Program& program, const PairGeometry& geometry, bool with_ntk);

  /// Readouts and kept nodes; while inputs are recorded, their variances and states too.
  void forth(const PairBlock<Scalar>& block, const StopRequest& stop);

  /// Behind forth(), or on its own if needs_forth() is false: adds to the adjoints of what is recorded of the inputs.
  void back(const PairBlock<Scalar>& block, const StopRequest& stop);

  /// False if the way back makes all that it reads itself.
  [[nodiscard]] bool needs_forth() const { return needs_forth_; }

  /// Of a pair of the block.
  [[nodiscard]] const KernelValues<Scalar>& readout(std::size_t pair, NodeId node) const {
    return pairs_[pair].readouts[node];
  }
  /// To be set before back().
  void set_readout_adjoint(std::size_t pair, NodeId node, const KernelValues<Scalar>& adjoint) {
    place(pair).readout_adjoints[node] = adjoint;
  }

 private:
  /// What is kept of a pair.
  struct PairNodes {
    std::vector<KeptNode<Scalar>> kept;                  ///< [node]
    std::vector<KernelValues<Scalar>> readouts;          ///< [node]
    std::vector<KernelValues<Scalar>> readout_adjoints;  ///< [node]
  };

  [[nodiscard]] const Node& node(NodeId id) const { return program_.graph.nodes[id]; }
  [[nodiscard]] PairNodes& place(std::size_t pair);
  [[nodiscard]] std::unique_ptr<EntryGathering> gathering_of(NodeId id) const;

  void forth(std::size_t step, const PlaneStep& plane, const PairBlock<Scalar>& block,
             const StopRequest& stop);
  void forth(const PairStep& pair, const PairBlock<Scalar>& block, std::size_t number,
             const StopRequest& stop);
  void back(std::size_t step, const PlaneStep& plane, const PairBlock<Scalar>& block,
            const StopRequest& stop);
  void back(const PairStep& pair, const PairBlock<Scalar>& block, std::size_t number,
            const StopRequest& stop);
  /// Where the plane of a run's root goes, and where its adjoint comes from.
  void put(NodeId target, TapeEntry<Scalar>& plane, PairNodes& nodes) const;
  void take_adjoint(NodeId target, TapeEntry<Scalar>& plane, const PairNodes& nodes) const;
  [[nodiscard]] PairView<Scalar> view(NodeId id, const PairBlock<Scalar>& block, std::size_t number,
                                      const StopRequest& stop);
  /// body(the input that is recorded with itself, in front of a stage)
  template <typename Body>
  void with_self_view(NodeId id, const PairBlock<Scalar>& block, const StopRequest& stop, const Body& body);

  const Program& program_;
  const PairGeometry& geometry_;
  bool with_ntk_;
  bool needs_forth_ = false;
  std::vector<std::unique_ptr<EntryGathering>> gathering_;  ///< [node]; null where none gathers.
  std::vector<std::unique_ptr<RunWalk<Scalar>>> runs_;      ///< [step]; null for pair stages.
  std::vector<PairNodes> pairs_;                            ///< [pair of the block]
  std::vector<Scalar> scratch_;                             ///< Of a pair stage.
};

}  // namespace widelimit
