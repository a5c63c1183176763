#include "kernel/plan/primitives.hpp"

#include <algorithm>

#include "kernel/plan/demand.hpp"
#include "kernel/plan/geometry.hpp"
#include "network/mask_stage.hpp"
#include "network/plane_mapping.hpp"

namespace widelimit {
namespace {

/// All answers of a kind. There is no general one: without its own, a new kind does not compile.
template <typename Kind>
struct Primitive;

/// What reads the inputs themselves has no node before it.
struct OfInputs {
  static Reads reads() { return Reads::inputs; }
  static const Window* window() { return nullptr; }
  static Offsets offsets_before(const InputDemand& /*demand*/) { return {}; }
  /// The features that are multiplied are 0 in gaps.
  static Gaps gaps(Gaps /*inputs*/) { return Gaps::zero; }
  static bool works_in_place(std::size_t /*inputs*/) { return false; }
  static std::vector<NamedNumber> numbers() { return {}; }
  static ReadBack read_back(bool /*with_numbers*/) { return {.values = false, .result = false}; }
  static bool has_adjoint() { return true; }
  static bool stays_positive(std::span<const Positive> /*inputs*/) { return false; }
};

template <>
struct Primitive<InputNode> : OfInputs {
  const InputNode& node;
  explicit Primitive(const InputNode& of) : node{of} {}

  static Recorded recorded() { return Recorded::features; }
  [[nodiscard]] bool has_numbers_only() const { return node.transforms.empty(); }
  [[nodiscard]] Degree degree(std::span<const Degree> /*inputs*/) const {
    const auto normalises = [](const FeatureTransform& transform) {
      return std::holds_alternative<FeatureNorm>(transform);
    };
    return std::any_of(node.transforms.begin(), node.transforms.end(), normalises) ? 0 : 1;
  }
};

template <>
struct Primitive<FeatureNode> : OfInputs {
  explicit Primitive(const FeatureNode& /*of*/) {}

  static Recorded recorded() { return Recorded::feature_state; }
  static bool has_numbers_only() { return false; }
  static Degree degree(std::span<const Degree> /*inputs*/) { return {}; }
};

/// A convolution, also a local one, or a dense layer.
std::vector<NamedNumber> numbers_of_affine(const AffineNode& node) {
  return {{"weight variance", node.weight_variance}, {"bias variance", node.bias_variance}};
}

template <>
struct Primitive<AffineNode> {
  const AffineNode& node;
  explicit Primitive(const AffineNode& of) : node{of} {}

  [[nodiscard]] Reads reads() const {
    switch (affine_kind(node)) {
      case AffineKind::single_position:
        return Reads::entries;
      case AffineKind::shifted:
      case AffineKind::strided:
        return Reads::windows;
      case AffineKind::circular:
        break;
    }
    return Reads::kept_windows;
  }
  [[nodiscard]] const Window* window() const { return &node.window; }
  [[nodiscard]] Offsets offsets_before(const InputDemand& demand) const {
    return demand.through(node.window);
  }
  static Recorded recorded() { return Recorded::nothing; }
  /// Sums that reach into rows, and biases, are finite numbers.
  [[nodiscard]] Gaps gaps(Gaps inputs) const {
    switch (reads()) {
      case Reads::kept_windows:
        return Gaps::unknown;
      case Reads::entries:
        return std::min(inputs, Gaps::finite);
      default:
        return Gaps::finite;
    }
  }
  [[nodiscard]] bool works_in_place(std::size_t /*inputs*/) const { return reads() == Reads::entries; }
  [[nodiscard]] std::vector<NamedNumber> numbers() const { return numbers_of_affine(node); }
  static bool has_numbers_only() { return true; }
  static ReadBack read_back(bool with_numbers) { return {.values = false, .result = with_numbers}; }
  static bool has_adjoint() { return true; }
  /// A bias does not scale with the input. It does no harm to kernels that do not scale either.
  [[nodiscard]] Degree degree(std::span<const Degree> inputs) const {
    return node.bias_variance == 0 || inputs[0] == 0 ? inputs[0] : Degree{};
  }
  /// Strided windows may leave out all positions that are not 0, so all of them have to be positive.
  [[nodiscard]] bool stays_positive(std::span<const Positive> inputs) const {
    return node.weight_variance > 0 && inputs[0] == Positive::all;
  }
};

template <>
struct Primitive<LocalAffineNode> {
  const LocalAffineNode& node;
  explicit Primitive(const LocalAffineNode& of) : node{of} {}

  static Reads reads() { return Reads::kept_windows; }
  static const Window* window() { return nullptr; }
  /// A local convolution is 0 at every other offset than 0, and needs nothing for them.
  [[nodiscard]] Offsets offsets_before(const InputDemand& demand) const {
    return demand.wanted().contains({0, 0, 0}) ? demand.through(node.affine.window, Offsets::zero())
                                               : Offsets{};
  }
  static Recorded recorded() { return Recorded::nothing; }
  static Gaps gaps(Gaps /*inputs*/) { return Gaps::finite; }
  static bool works_in_place(std::size_t /*inputs*/) { return false; }
  [[nodiscard]] std::vector<NamedNumber> numbers() const { return numbers_of_affine(node.affine); }
  /// Its stage may have others.
  static bool has_numbers_only() { return false; }
  static ReadBack read_back(bool /*with_numbers*/) { return {.values = false, .result = false}; }
  [[nodiscard]] bool has_adjoint() const { return node.stage == nullptr || node.stage->has_adjoint(); }
  static Degree degree(std::span<const Degree> /*inputs*/) { return {}; }
  static bool stays_positive(std::span<const Positive> /*inputs*/) { return false; }
};

/// What acts on every entry alone.
struct OfEntries {
  static Reads reads() { return Reads::entries; }
  static const Window* window() { return nullptr; }
  static Offsets offsets_before(const InputDemand& demand) { return demand.wanted(); }
};

template <>
struct Primitive<RowNode> : OfEntries {
  const RowStage& stage;
  explicit Primitive(const RowNode& of) : stage{*of.stage} {}

  static Recorded recorded() { return Recorded::auxiliaries; }
  /// Stages that do not promise to clear gaps may leave anything there, NaN included.
  [[nodiscard]] Gaps gaps(Gaps inputs) const {
    return inputs != Gaps::unknown && stage.clears_gaps() ? Gaps::zero : Gaps::unknown;
  }
  static bool works_in_place(std::size_t /*inputs*/) { return true; }
  static std::vector<NamedNumber> numbers() { return {}; }
  static bool has_numbers_only() { return false; }
  static ReadBack read_back(bool /*with_numbers*/) { return {.values = true, .result = false}; }
  [[nodiscard]] bool has_adjoint() const { return stage.has_adjoint(); }
  [[nodiscard]] Degree degree(std::span<const Degree> inputs) const {
    if (!inputs[0]) return {};
    switch (stage.multiples()) {
      case Multiples::kept:
        return inputs[0];
      case Multiples::equalised:
        return 0;
      case Multiples::equal:
        return inputs[0] == 0 ? inputs[0] : Degree{};
      case Multiples::unknown:
        break;
    }
    return {};
  }
  /// A mask may leave only positions that are 0, such as those between the steps of a transposed convolution.
  [[nodiscard]] bool stays_positive(std::span<const Positive> inputs) const {
    const bool is_mask = dynamic_cast<const MaskStage*>(&stage) != nullptr;
    return is_mask ? inputs[0] == Positive::all : inputs[0] != Positive::none;
  }
};

template <>
struct Primitive<SumNode> : OfEntries {
  const SumNode& node;
  explicit Primitive(const SumNode& of) : node{of} {}

  static Recorded recorded() { return Recorded::nothing; }
  static Gaps gaps(Gaps inputs) { return inputs; }
  static bool works_in_place(std::size_t inputs) { return inputs == 2; }
  [[nodiscard]] std::vector<NamedNumber> numbers() const {
    std::vector<NamedNumber> factors;
    for (const double factor : node.factors) factors.push_back({"factor of a branch", factor});
    return factors;
  }
  static bool has_numbers_only() { return true; }
  static ReadBack read_back(bool with_numbers) { return {.values = with_numbers, .result = false}; }
  static bool has_adjoint() { return true; }
  /// A sum of terms that scale differently is not proportional to either.
  static Degree degree(std::span<const Degree> inputs) {
    const bool agree =
        std::all_of(inputs.begin(), inputs.end(), [&](const Degree& input) { return input == inputs[0]; });
    return agree ? inputs[0] : Degree{};
  }
  [[nodiscard]] bool stays_positive(std::span<const Positive> inputs) const {
    for (std::size_t k = 0; k < inputs.size(); ++k)
      if (node.factors[k] > 0 && inputs[k] != Positive::none) return true;
    return false;
  }
};

template <>
struct Primitive<ProductNode> : OfEntries {
  const ProductNode& node;
  explicit Primitive(const ProductNode& of) : node{of} {}

  static Recorded recorded() { return Recorded::nothing; }
  static Gaps gaps(Gaps inputs) { return inputs; }
  static bool works_in_place(std::size_t /*inputs*/) { return false; }
  [[nodiscard]] std::vector<NamedNumber> numbers() const { return {{"factor of the branches", node.factor}}; }
  static bool has_numbers_only() { return true; }
  static ReadBack read_back(bool with_numbers) { return {.values = true, .result = with_numbers}; }
  static bool has_adjoint() { return true; }
  static Degree degree(std::span<const Degree> inputs) {
    int sum = 0;
    for (const Degree& input : inputs) {
      if (!input) return {};
      sum += *input;
    }
    return sum;
  }
  [[nodiscard]] bool stays_positive(std::span<const Positive> inputs) const {
    return node.factor > 0 &&
           std::all_of(inputs.begin(), inputs.end(), [](Positive input) { return input == Positive::all; });
  }
};

/// What takes the planes of a chain as they are finished: a chain ends there, and it is no instruction.
struct OfGatherings {
  static const Window* window() { return nullptr; }
  static Gaps gaps(Gaps inputs) { return inputs; }
  static bool works_in_place(std::size_t /*inputs*/) { return false; }
  static std::vector<NamedNumber> numbers() { return {}; }
  static Degree degree(std::span<const Degree> /*inputs*/) { return {}; }
  static bool stays_positive(std::span<const Positive> /*inputs*/) { return false; }
};

template <>
struct Primitive<PoolNode> : OfGatherings {
  const PoolNode& node;
  explicit Primitive(const PoolNode& of) : node{of} {}

  static Reads reads() { return Reads::pooled; }
  [[nodiscard]] Offsets offsets_before(const InputDemand& demand) const { return demand.pooled(node.window); }
  static Recorded recorded() { return Recorded::nothing; }
  static bool has_numbers_only() { return true; }
  static ReadBack read_back(bool /*with_numbers*/) { return {.values = false, .result = false}; }
  static bool has_adjoint() { return true; }
};

template <>
struct Primitive<ReadoutNode> : OfGatherings {
  const ReadoutNode& node;
  explicit Primitive(const ReadoutNode& of) : node{of} {}

  [[nodiscard]] Reads reads() const {
    return node.kind == ReadoutKind::flatten ? Reads::equal_positions : Reads::all_positions;
  }
  [[nodiscard]] Offsets offsets_before(const InputDemand& demand) const {
    return reads() == Reads::equal_positions ? Offsets::zero() : demand.all();
  }
  static Recorded recorded() { return Recorded::nothing; }
  static bool has_numbers_only() { return true; }
  static ReadBack read_back(bool /*with_numbers*/) { return {.values = false, .result = false}; }
  static bool has_adjoint() { return true; }
};

template <>
struct Primitive<PairNode> : OfGatherings {
  const PairStage& stage;
  explicit Primitive(const PairNode& of) : stage{*of.stage} {}

  [[nodiscard]] Reads reads() const {
    return plane_mapping(&stage) != nullptr ? Reads::mapped : Reads::matrix;
  }
  [[nodiscard]] Offsets offsets_before(const InputDemand& demand) const {
    if (const PlaneMapping* mapping = plane_mapping(&stage)) return demand.mapped(*mapping);
    // Stages that keep to the diagonal, if only that is wanted, say so in input_entries().
    return stage.input_entries(demand.wanted_entries()) == Entries::diagonal ? demand.diagonal()
                                                                             : demand.all();
  }
  [[nodiscard]] Recorded recorded() const {
    return reads() == Reads::matrix ? Recorded::pair_state : Recorded::nothing;
  }
  static bool has_numbers_only() { return false; }
  static ReadBack read_back(bool /*with_numbers*/) { return {.values = true, .result = false}; }
  [[nodiscard]] bool has_adjoint() const { return stage.has_adjoint(); }
};

/// Puts a question to the primitive of an operation.
template <typename Question>
auto ask(const Operation& operation, const Question& question) {
  return std::visit([&]<typename Kind>(const Kind& node) { return question(Primitive<Kind>(node)); },
                    operation);
}

}  // namespace

AffineKind affine_kind(const AffineNode& node) {
  const Window3 window(node.window);
  // A selection of positions (with_selections()) has no weights and steps through positions.
  if (node.weights == AffineNode::Weights::none) return AffineKind::strided;
  // This comes before the padding is looked at: a window of one position sees no border, whatever its padding.
  if (window.is_single_position()) return AffineKind::single_position;
  if (window.padding == Padding::circular)
    // A strided window of one position never reaches the border either.
    return window.size == Index3{1, 1, 1} ? AffineKind::strided : AffineKind::circular;
  const bool shifts = window.stride == Index3{1, 1, 1} && window.padding == Padding::same;
  return shifts ? AffineKind::shifted : AffineKind::strided;
}

Reads reads_of(const Operation& operation) {
  return ask(operation, [](const auto& primitive) { return primitive.reads(); });
}

bool gathers_planes(const Operation& operation) {
  const Reads reads = reads_of(operation);
  return reads == Reads::pooled || reads == Reads::mapped;
}

bool reads_out(const Operation& operation) {
  const Reads reads = reads_of(operation);
  return reads == Reads::equal_positions || reads == Reads::all_positions;
}

const Window* shared_window(const Operation& operation) {
  return ask(operation, [](const auto& primitive) { return primitive.window(); });
}

Offsets offsets_before(const Operation& operation, const InputDemand& demand) {
  return ask(operation, [&](const auto& primitive) { return primitive.offsets_before(demand); });
}

Recorded recorded_of(const Operation& operation) {
  return ask(operation, [](const auto& primitive) { return primitive.recorded(); });
}

bool multiplies_features(const Operation& operation) { return recorded_of(operation) == Recorded::features; }

bool needs_variances(const Operation& operation) {
  const Recorded recorded = recorded_of(operation);
  return recorded == Recorded::auxiliaries || recorded == Recorded::pair_state;
}

const FeatureStage* feature_stage_of(const Operation& operation) {
  const auto* features = std::get_if<FeatureNode>(&operation);
  return features == nullptr ? nullptr : features->stage.get();
}

const RowStage* local_stage_of(const Operation& operation) {
  const auto* local = std::get_if<LocalAffineNode>(&operation);
  return local == nullptr ? nullptr : local->stage.get();
}

const AffineNode* affine_part(const Operation& operation) {
  if (const auto* local = std::get_if<LocalAffineNode>(&operation)) return &local->affine;
  return std::get_if<AffineNode>(&operation);
}

const MaskRule* mask_rule_of(const Operation& operation) {
  const auto* pair = std::get_if<PairNode>(&operation);
  return pair == nullptr ? nullptr : pair->mask.get();
}

Gaps gaps_after(const Operation& operation, Gaps inputs) {
  return ask(operation, [&](const auto& primitive) { return primitive.gaps(inputs); });
}

bool works_in_place(const Operation& operation, std::size_t inputs) {
  return ask(operation, [&](const auto& primitive) { return primitive.works_in_place(inputs); });
}

std::vector<NamedNumber> numbers_of(const Operation& operation) {
  return ask(operation, [](const auto& primitive) { return primitive.numbers(); });
}

bool has_numbers_only(const Operation& operation) {
  return ask(operation, [](const auto& primitive) { return primitive.has_numbers_only(); });
}

ReadBack read_back(const Operation& operation, bool with_numbers) {
  return ask(operation, [&](const auto& primitive) { return primitive.read_back(with_numbers); });
}

bool has_adjoint(const Operation& operation) {
  return ask(operation, [](const auto& primitive) { return primitive.has_adjoint(); });
}

Degree degree_after(const Operation& operation, std::span<const Degree> inputs) {
  return ask(operation, [&](const auto& primitive) { return primitive.degree(inputs); });
}

bool stays_positive(const Operation& operation, std::span<const Positive> inputs) {
  return ask(operation, [&](const auto& primitive) { return primitive.stays_positive(inputs); });
}

}  // namespace widelimit
