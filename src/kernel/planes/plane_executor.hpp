#pragma once

#include <array>
#include <optional>
#include <vector>

#include "kernel/plan/pair_geometry.hpp"
#include "kernel/plan/program.hpp"
#include "kernel/planes/aligned_buffer.hpp"
#include "kernel/planes/input_state.hpp"
#include "kernel/planes/plane_pool.hpp"
#include "kernel/planes/plane_windows.hpp"
#include "kernel/step_timer.hpp"
#include "network/pair_sums.hpp"

namespace widelimit {

/// A pair of a tile: indices into its sides.
struct TilePair {
  Index left;
  Index right;
  bool same_input;
};

/// Some pairs of inputs of equal geometry that are executed together, best in the order of for_each_pair().
template <typename Scalar>
struct Tile {
  std::vector<const InputState<Scalar>*> left;
  std::vector<const InputState<Scalar>*> right;
  std::vector<TilePair> pairs;
};

/// Calls body(left, right) for all pairs of `left` and `right` inputs, along one (wrapped) diagonal after the
/// other. Neighbours on a diagonal are stacked: both their inputs are neighbours, so that auxiliary arrays
/// need not be repeated.
template <typename Body>
void for_each_pair(Index left, Index right, const Body& body) {
  for (Index diagonal = 0; diagonal < right; ++diagonal)
    for (Index i = 0; i < left; ++i) body(i, (i + diagonal) % right);
}

/// Numbers of workspace that an executor needs.
struct WorkspaceSize {
  std::size_t slot_count = 0;
  Index slots = 0;
  Index packs = 0;
  Index strips = 0;
  Index stores = 0;
  Index matrices = 0;
  Index products = 0;
  Index row_sums = 0;  ///< Of poolings.

  [[nodiscard]] Index total() const {
    return slots + packs + strips + stores + matrices + products + row_sums;
  }
};

/// Of so many inputs a side the products are made together (see PlaneExecutor::multiply_block()).
inline constexpr Index block_side = 6;

/// For tiles of at most `side` inputs a side and `pairs` pairs.
WorkspaceSize workspace_size(const Program& program, const PairGeometry& geometry, const StateLayout& state,
                             Purpose purpose, Kernel kernel, Index side, Index pairs);

/// Executes the steps of a program on tiles of pairs, in a workspace of its own: one executor a thread.
///
/// For every offset the planes of a run are laid out once and the auxiliary arrays of both sides packed once;
/// then the pairs of the tile go through all instructions of the run while their planes are in the cache: one
/// by one, or several as a stack of small planes.
template <typename Scalar>
class PlaneExecutor {
 public:
  /// The program must outlive the executor. Tiles have at most `largest_side` inputs a side. Once `stop` asks
  /// for it, Cancelled is thrown between any two instructions, pairs of a stage, and within stages.
  PlaneExecutor(const Program& program, Purpose purpose, Kernel kernel, bool demand_everything,
                Index largest_side, StopRequest stop = {});

  /// Executes all steps; readout() then gives the values behind the readouts. The inputs of one side have one
  /// shape; the geometry is laid out anew when a tile's shapes are not those of the last one.
  void run(const Tile<Scalar>& tile);

  /// Executes the steps on one input with itself and records in `state`, whose features are there already,
  /// what pairs will need. For executors made for Purpose::state.
  void record_state(InputState<Scalar>& state);

  /// Value of a readout node for a pair of the last tile.
  struct Entry {
    Scalar nngp;
    Scalar ntk;
  };
  [[nodiscard]] Entry readout(NodeId node, Index pair) const;

  [[nodiscard]] StepTimer& timer() { return timer_; }

 private:
  struct Sum {
    double nngp = 0;
    double ntk = 0;
  };
  /// Pairs along a diagonal of the tile, whose planes lie one behind the other: the left inputs from `left`
  /// on with the right ones from place `right` on. Inputs with themselves form stacks of their own.
  struct Stack {
    Index left;
    Index right;
    Index first_pair;
    Index count;
    bool same_input;
  };
  /// A convolution (local ones too) or dense layer: what does not depend on the offset.
  struct Affine {
    Window3 window;
    Index3 left_front;
    Index3 right_front;
    double scale;
    double bias;
    enum class Kind { single_position, shifted, strided, circular } kind;
  };
  /// An instruction's plane at the current offset, and its packed auxiliary arrays, those of all inputs of a
  /// side one behind the other.
  struct Placed {
    std::array<AxisPieces, 3> axis;
    PlaneLayout layout;
    bool is_diagonal = false;                ///< The offset is 0.
    bool skips_ntk = false;                  ///< It is zero, all readers know that, and it is not written.
    Plane<Scalar> planes{nullptr, nullptr};  ///< Where the result goes.
    std::optional<Affine> affine;
    numerics::PlaneWindows windows{};  ///< Of a strided convolution.
    /// Where arrays are read: packed for this plane; or, by planes that are not stacked, where they lie: in
    /// strips, or in the states, if they are whole images or single rows.
    enum class Source { packs, strips, state_rows, whole_states } source = Source::packs;
    /// The others go on with other numbers instead of zeros behind the last row of a (single slab of a)
    /// plane.
    [[nodiscard]] bool has_guarded_arrays() const {
      return source == Source::packs || source == Source::whole_states;
    }
    [[nodiscard]] Index end_of_rows() const {
      return (layout.extent[1] - 1) * layout.stride[1] + layout.extent[2];
    }
    [[nodiscard]] bool empty() const {
      return axis[0].extent[0] <= 0 || axis[1].extent[0] <= 0 || axis[2].extent[0] <= 0;
    }
    /// It is the plane of this offset and no other.
    [[nodiscard]] bool has_offset(const Index3& offset) const {
      for (std::size_t k = 0; k < 3; ++k)
        if (axis[k].count > 1 || axis[k].offset[0] != offset[k]) return false;
      return true;
    }
    /// Calls body(box, begin) for every piece: its offset and positions, and where it begins in the plane.
    template <typename Body>
    void for_each_piece(const Body& body) const {
      for (std::size_t y = 0; y < static_cast<std::size_t>(axis[1].count); ++y)
        for (std::size_t z = 0; z < static_cast<std::size_t>(axis[2].count); ++z)
          body(Box(axis, {0, y, z}), layout.at(0, axis[1].start[y]) + axis[2].start[z]);
    }
    Index arrays = 0;
    std::vector<Scalar*> left;          ///< [array]
    std::vector<Scalar*> right;         ///< [array]
    std::vector<Scalar*> left_strips;   ///< [array]
    std::vector<Scalar*> right_strips;  ///< [array]
    /// Where the plane begins in an array of the first input of the left and right side, and how far the
    /// next input's is from there.
    struct Place {
      Index begin;
      Index step;
    };
    std::array<Place, 2> place{};
    Index gap_rows = 0;   ///< Guards between pieces along the second axis; 0: no pieces in this run.
    Index strip_gap = 0;  ///< The row of the left strips where these begin.
    std::vector<const Scalar*> left_row;   ///< [array], of the current stack.
    std::vector<const Scalar*> right_row;  ///< [array], of the current stack.
  };

  /// The covariances of a pair as matrices, and free space behind them.
  struct MatrixPair {
    Scalar* nngp;
    Scalar* ntk;
    Scalar* scratch;
  };

  // Steps (plane_executor.cpp).
  void take_shapes(const StateLayout& left, const StateLayout& right, Index side);
  void execute(const PlaneStep& step, std::size_t number);
  void execute(const InputStep& step);
  void execute(const PairStep& step);
  void prepare(const Run& run);
  [[nodiscard]] bool skips_ntk(const Run& run, std::size_t number) const;
  [[nodiscard]] Affine affine_of(const AffineNode& node, NodeId input) const;
  /// Offsets along every axis.
  using PlaneOffsets = std::array<AxisOffsets, 3>;
  void execute_offset(const PlaneStep& step, const PlaneOffsets& offsets, bool is_demanded);
  void end_group(NodeId target);
  void stack_pairs(const Run& run);
  void place(const Run& run, const PlaneOffsets& offsets);
  void sum_up(const FunctionalStage& stage, NodeId node);
  void record_pair_state(const PairNode& node, NodeId id);

  // Auxiliary arrays (plane_packing.cpp).
  void take_packs(const Run& run);
  [[nodiscard]] Index right_place(const TilePair& pair) const;
  void pack(const Run& run);
  void move_gaps(Placed& placed, NodeId node);
  [[nodiscard]] std::array<Index, 2> strip_rows(NodeId node, const Placed& placed) const;
  [[nodiscard]] typename Placed::Source array_source(NodeId node, const Placed& placed, bool strips) const;
  void pack_strips(NodeId node, Placed& placed);
  [[nodiscard]] std::array<Index3, 2> first_positions(const Placed& placed, bool in_strips) const;
  void pack_planes(NodeId node, const Placed& placed, bool from_strips);
  void locate(NodeId node, Placed& placed) const;
  void find_rows(NodeId node, const Placed& placed, std::size_t side, Index input, Index place,
                 const Scalar** rows) const;
  void choose_rows(const Run& run, const Stack& stack);

  // Instructions (plane_instructions.cpp).
  void evaluate(const Run& run, std::size_t number, const Stack& stack);
  void input_products(std::size_t number, const Stack& stack, const Plane<Scalar>& planes);
  [[nodiscard]] std::optional<std::size_t> blocked_input(const Run& run) const;
  [[nodiscard]] static std::array<Index, 2> block_of(const Stack& stack);
  /// True for inputs whose products are made in blocks at the current offset.
  [[nodiscard]] bool is_made_in_blocks(std::size_t number) const {
    return !stacks_many_ && blocked_input_ == number;
  }
  void take_product(const Run& run, const Stack& stack);
  void multiply_block(const Run& run, const Stack& stack);
  [[nodiscard]] Scalar* block_product(Index left, Index right);
  void affine(const Run& run, std::size_t number, const Stack& stack, const Plane<Scalar>& target);
  [[nodiscard]] static numerics::PlaneWindows strided_windows(const Placed& from, const Placed& to);
  static void fill_bias(const Affine& affine, std::size_t size, const Plane<Scalar>& target);
  void local_affine(const Run& run, std::size_t number, Index pair, const Plane<Scalar>& target);
  void circular_affine(const Run& run, std::size_t number, Index pair, const Plane<Scalar>& target);
  void apply_row(const Run& run, std::size_t number, const Stack& stack, const RowStage& stage,
                 const Plane<Scalar>& target);
  void add_planes(const Run& run, std::size_t number, const Stack& stack, const SumNode& node,
                  const Plane<Scalar>& target);
  void multiply_planes(const Run& run, std::size_t number, const Stack& stack, const ProductNode& node,
                       const Plane<Scalar>& target);
  void record_variances(const Run& run, std::size_t number, const RowStage& stage,
                        const Plane<Scalar>& source);
  [[nodiscard]] numerics::DualRow<Scalar> dual_row(std::size_t number, const Stack& stack,
                                                   const Plane<Scalar>& planes) const;
  /// Numbers of an instruction's planes, padded.
  [[nodiscard]] std::size_t row_size(std::size_t number, const Stack& stack) const;
  /// Puts zeros behind a plane's rows where its arrays had none (see Placed::has_guarded_arrays()).
  void clear_behind_rows(const Placed& placed, const Plane<Scalar>& target) const;

  // Kept nodes and what ends a run (plane_stores.cpp).
  void begin_target(NodeId target);
  [[nodiscard]] bool is_pool(NodeId node) const {
    return std::holds_alternative<PoolNode>(program_.graph.nodes[node].operation);
  }
  void put(NodeId target, const Placed& placed, const Stack& stack, const Plane<Scalar>& source);
  void load(NodeId node, const Placed& placed, Index first_pair, Index count, const Plane<Scalar>& target);
  void save(NodeId node, const Placed& placed, const Stack& stack, const Plane<Scalar>& source);
  void add_readout(NodeId node, const Placed& placed, Index pair, const Plane<Scalar>& source);
  [[nodiscard]] Plane<Scalar> store(NodeId node, Index pair);
  [[nodiscard]] MatrixPair input_matrices(NodeId node, Index pair);

  [[nodiscard]] Plane<Scalar> slot(std::size_t number);
  [[nodiscard]] bool recording() const { return recorded_ != nullptr; }
  [[nodiscard]] const Node& node_of(const Instruction& instruction) const {
    return program_.graph.nodes[instruction.node];
  }

  const Program& program_;
  Purpose purpose_;
  Kernel kernel_;
  bool demand_everything_;
  bool with_ntk_;
  StopRequest stop_;
  Index side_ = 0;  ///< Of the tiles that the workspace is made for.

  // Of the shapes of the current tile.
  Shape left_shape_;
  Shape right_shape_;
  bool has_shapes_ = false;
  PairGeometry geometry_;
  std::size_t slot_count_ = 0;

  AlignedBuffer<Scalar> slots_;
  AlignedBuffer<Scalar> packs_;
  AlignedBuffer<Scalar> strips_;
  AlignedBuffer<Scalar> stores_;
  AlignedBuffer<Scalar> matrices_;
  AlignedBuffer<Scalar> products_;      ///< Of a block of inputs (see multiply_block()).
  std::vector<std::vector<Sum>> sums_;  ///< [node][pair]

  // Of the current tile, step and offset.
  const Tile<Scalar>* tile_ = nullptr;
  InputState<Scalar>* recorded_ = nullptr;
  const RunGeometry* run_ = nullptr;
  std::vector<Placed> placed_;             ///< [instruction]
  std::vector<const Scalar*> block_left_;  ///< [input of the block, array]
  std::vector<const Scalar*> block_right_;
  std::vector<Stack> stacks_;
  std::optional<std::size_t> blocked_input_;  ///< The instruction whose products are made block by block.
  std::array<Index, 2> block_{};              ///< The one whose products are there.
  PlanePool<Scalar> pool_;                    ///< Where the run ends in one.
  Index stacked_ = 0;                         ///< Pairs that the stacks were made for, 0: none are made yet.
  std::array<Plane<Scalar>, 2> scratch_;
  StepTimer timer_;
  bool stacks_pay_ = false;   ///< In the current run, small planes are better stacked.
  bool stacks_many_ = false;  ///< Some stacks have more than one pair.
  Index right_places_ = 0;
  std::optional<Index> strips_at_;  ///< The offset along the last axis for which strips are packed.
};

}  // namespace widelimit
