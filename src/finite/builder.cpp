#include "finite/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "finite/branch_layers.hpp"
#include "layers/finite/seeds.hpp"
#include "layers/layer_parts.hpp"
#include "network/layer_model.hpp"
#include "network/window.hpp"
#include "widelimit/error.hpp"

namespace widelimit::finite {
namespace {

using layers::BranchKind;
using layers::BranchParts;

template <typename Scalar>
using LayerPointer = std::unique_ptr<FiniteLayer<Scalar>>;

/// A layer with its path; repetitions written out.
struct PathLayer {
  Layer layer;
  std::string path;
};

std::vector<PathLayer> unrolled(const Layers& layers, const std::string& prefix) {
  std::vector<PathLayer> list;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string path = fmt::format("{}layers[{}]", prefix, i);
    const auto repeat = layers::repeat_parts(layers[i]);
    if (!repeat) {
      list.push_back({layers[i], path});
      continue;
    }
    const auto once = unrolled(repeat->layers, path + ".");
    // Repetitions share their path; seeds, and so weights, are drawn for each.
    for (Index k = 0; k < repeat->times; ++k) list.insert(list.end(), once.begin(), once.end());
  }
  return list;
}

OutputChannels channels_of(const Layer& layer) {
  const auto counterpart = model_of(layer).finite_counterpart();
  return counterpart ? counterpart->channels() : OutputChannels::kept;
}

template <typename Scalar>
LayerPointer<Scalar> made(const Layer& layer, const Site& site) {
  const auto counterpart = model_of(layer).finite_counterpart();
  if (!counterpart)
    throw ArgumentError(
        "expected a layer with a finite counterpart; pass one to pair_layer() or row_layer()");
  if constexpr (std::is_same_v<Scalar, float>)
    return counterpart->make_float(site);
  else
    return counterpart->make_double(site);
}

bool opens_channels(const Layers& layers);

/// True if the channels after the layer can be asked for.
bool opens_channels(const Layer& layer) {
  if (const auto branches = layers::branch_parts(layer))
    // One branch that cannot choose its channels fixes those of all.
    return std::all_of(branches->branches.begin(), branches->branches.end(),
                       [](const auto& branch) { return opens_channels(branch.layers); });
  if (const auto repeat = layers::repeat_parts(layer)) return opens_channels(repeat->layers);
  return channels_of(layer) == OutputChannels::chosen;
}

bool opens_channels(const Layers& layers) {
  return std::any_of(layers.begin(), layers.end(), [](const Layer& layer) { return opens_channels(layer); });
}

/// `total` channels in parts proportional to the shares, by largest remainders.
std::vector<Index> shared_out(Index total, const BranchParts& parts) {
  std::vector<Index> channels;
  std::vector<std::pair<double, std::size_t>> remainders;
  Index given = 0;
  for (std::size_t i = 0; i < parts.branches.size(); ++i) {
    const double exact = parts.branches[i].weight * static_cast<double>(total);
    // The small addition keeps a whole number that rounding has put just below itself from losing a channel.
    channels.push_back(static_cast<Index>(std::floor(exact + 1e-9)));
    given += channels.back();
    // Remainders are negative, so that the largest come first; equal ones keep the order of the branches.
    remainders.emplace_back(static_cast<double>(channels.back()) - exact, i);
  }
  std::sort(remainders.begin(), remainders.end());
  // What rounding down has left goes to the largest remainders.
  for (std::size_t k = 0; given < total; ++k, ++given) ++channels[remainders[k].second];
  return channels;
}

/// All channels, of which `own` are the share of branch i. A share that is no whole number would be rounded, and the
/// network would have another limit.
Index total_of_share(const BranchParts& parts, std::size_t i, Index own) {
  const auto whole = [](double channels) {
    return std::abs(channels - std::round(channels)) <= 1e-9 * std::max(1.0, channels);
  };
  const double total = static_cast<double>(own) / parts.branches[i].weight;
  bool divides = whole(total);
  for (const auto& branch : parts.branches) divides = divides && whole(branch.weight * std::round(total));
  if (!divides)
    throw ArgumentError(fmt::format(
        "expected whole numbers of channels for all shares, got {} in branch {} for its share of {}; "
        "choose channels that the shares divide",
        own, i, parts.branches[i].weight));
  return static_cast<Index>(std::llround(total));
}

template <typename Scalar>
class Builder {
 public:
  Builder(const Widths& widths, const Heads& heads, std::uint64_t seed)
      : widths_{widths}, heads_{heads}, seed_{seed} {}

  /// Channels are as many as `wanted` where the layers leave them open.
  LayerPointer<Scalar> sequence(const Layers& layers, const Form& input, std::optional<Index> wanted,
                                const std::string& prefix) {
    const auto list = unrolled(layers, prefix);
    const auto last = last_opening(list);
    Parts<Scalar> parts;
    Form form = input;
    for (std::size_t i = 0; i < list.size(); ++i) {
      // Only the last layer that opens channels is asked for `wanted`; those before it take the widths in their order.
      parts.push_back(layer(list[i], form, last == i ? wanted : std::nullopt));
      form = parts.back()->output();
    }
    return make_sequence<Scalar>(input, std::move(parts));
  }

  void check_all_widths_used() const {
    if (next_width_ < widths_.layers.size())
      throw ArgumentError(fmt::format(
          "FiniteNetwork: expected {} widths, one for every place where channels are open, got {}",
          next_width_, widths_.layers.size()));
  }

 private:
  /// The layer whose channels are those after the whole list, if there is one.
  static std::optional<std::size_t> last_opening(const std::vector<PathLayer>& list) {
    for (std::size_t i = list.size(); i-- > 0;) {
      if (channels_of(list[i].layer) == OutputChannels::joined) return std::nullopt;
      if (opens_channels(list[i].layer)) return i;
    }
    return std::nullopt;
  }

  LayerPointer<Scalar> layer(const PathLayer& place, const Form& input, std::optional<Index> wanted) {
    try {
      const bool opens = opens_channels(place.layer);
      const Index channels = !opens ? input.channels : wanted ? *wanted : next_width();
      if (const auto branches = layers::branch_parts(place.layer))
        return joined(*branches, input, opens ? std::optional(channels) : std::nullopt, place.path);
      // Every layer has a seed of its own, in the order in which layers are made.
      return made<Scalar>(place.layer, {input, channels, mixed_seed(seed_, layers_++), head_widths()});
    } catch (const ArgumentError& error) {
      throw NetworkError(fmt::format("{} ({}): {}", place.path, place.layer.kind(), error.what()));
    }
  }

  LayerPointer<Scalar> joined(const BranchParts& parts, const Form& input, std::optional<Index> wanted,
                              const std::string& path) {
    const std::size_t count = parts.branches.size();
    std::vector<std::optional<Index>> channels(count, wanted);
    Parts<Scalar> branches(count);
    const auto build = [&](std::size_t i) {
      branches[i] =
          sequence(parts.branches[i].layers, input, channels[i], fmt::format("{}.branches[{}].", path, i));
    };
    // Branches that cannot choose come first: the others follow them.
    for (std::size_t i = 0; i < count; ++i) {
      if (opens_channels(parts.branches[i].layers)) continue;
      build(i);
      const Index own = branches[i]->output().channels;
      wanted = parts.kind == BranchKind::concat ? total_of_share(parts, i, own) : own;
    }
    if (parts.kind == BranchKind::concat) {
      const auto shares = shared_out(*wanted, parts);
      channels.assign(shares.begin(), shares.end());
    } else {
      channels.assign(count, wanted);
    }
    for (std::size_t i = 0; i < count; ++i)
      if (!branches[i]) build(i);
    check_forms(parts, branches, channels);
    return join(parts, std::move(branches));
  }

  static void check_forms(const BranchParts& parts, const Parts<Scalar>& branches,
                          const std::vector<std::optional<Index>>& channels) {
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const Form first = branches[0]->output();
      Form form = branches[i]->output();
      if (parts.kind == BranchKind::concat_positions) ignore_axis(parts.axis, first.shape, form.shape);
      if (form.shape != first.shape)
        throw ArgumentError(
            fmt::format("expected branches of equal shape, got {} (branch 0) and {} (branch {})",
                        axes_text(first.shape), axes_text(form.shape), i));
      if (form.channels < 1 || (parts.kind == BranchKind::concat && form.channels != *channels[i]))
        throw ArgumentError(
            fmt::format("expected {} channels in branch {} for its share of {}, got {}; choose channels that "
                        "the shares divide",
                        *channels[i], i, parts.branches[i].weight, form.channels));
      if (parts.kind != BranchKind::concat && form.channels != first.channels)
        throw ArgumentError(
            fmt::format("expected branches of equal channels, got {} (branch 0) and {} (branch {})",
                        first.channels, form.channels, i));
    }
  }

  /// Along the axis of concatenated positions branches may differ.
  static void ignore_axis(Index axis, const Shape& expected, Shape& shape) {
    const auto place = static_cast<std::size_t>(axis);
    if (shape.size() <= place || expected.size() <= place)
      throw ArgumentError(fmt::format("expected branches with an axis {}, got {}", axis, axes_text(shape)));
    shape[place] = expected[place];
  }

  static LayerPointer<Scalar> join(const BranchParts& parts, Parts<Scalar> branches) {
    std::vector<double> scales;
    for (const auto& branch : parts.branches) scales.push_back(branch.weight);
    switch (parts.kind) {
      case BranchKind::sum:
        return make_sum<Scalar>(std::move(branches), scales);
      case BranchKind::product:
        return make_product<Scalar>(std::move(branches), scales);
      case BranchKind::concat:
        return make_concatenation<Scalar>(std::move(branches));
      case BranchKind::concat_positions:
        return make_position_concatenation<Scalar>(std::move(branches), static_cast<std::size_t>(parts.axis));
    }
    return nullptr;
  }

  Index next_width() {
    if (widths_.layers.empty()) return widths_.hidden;
    if (next_width_ == widths_.layers.size())
      throw ArgumentError(
          fmt::format("expected a width for this layer, got {} widths in all", widths_.layers.size()));
    return widths_.layers[next_width_++];
  }

  /// The heads with their defaults filled in.
  Heads head_widths() const {
    const Index usual = std::max<Index>(1, widths_.hidden / heads_.count);
    return {heads_.count, heads_.key_width == 0 ? usual : heads_.key_width,
            heads_.value_width == 0 ? usual : heads_.value_width, heads_.norm};
  }

  Widths widths_;
  Heads heads_;
  std::uint64_t seed_;
  std::size_t next_width_ = 0;
  std::uint64_t layers_ = 0;
};

void require_positive(const char* name, Index value) {
  if (value < 1)
    throw ArgumentError(fmt::format("FiniteNetwork: {} must be at least 1, got {}", name, value));
}

void check(const Form& input, const Widths& widths, const Heads& heads) {
  for (const Index size : input.shape) require_positive("sizes of the input", size);
  require_positive("channels of the input", input.channels);
  require_positive("widths.hidden", widths.hidden);
  require_positive("widths.outputs", widths.outputs);
  for (const Index width : widths.layers) require_positive("widths.layers", width);
  require_positive("heads.count", heads.count);
  if (heads.key_width != 0) require_positive("heads.key_width", heads.key_width);
  if (heads.value_width != 0) require_positive("heads.value_width", heads.value_width);
}

}  // namespace

template <typename Scalar>
std::unique_ptr<FiniteLayer<Scalar>> build_layers(const Network& network, const Form& input,
                                                  const Widths& widths, const Heads& heads,
                                                  std::uint64_t seed) {
  check(input, widths, heads);
  Builder<Scalar> builder(widths, heads, seed);
  auto layers = builder.sequence(network.layers(), input, widths.outputs, "");
  builder.check_all_widths_used();
  return layers;
}

template std::unique_ptr<FiniteLayer<float>> build_layers(const Network&, const Form&, const Widths&,
                                                          const Heads&, std::uint64_t);
template std::unique_ptr<FiniteLayer<double>> build_layers(const Network&, const Form&, const Widths&,
                                                           const Heads&, std::uint64_t);

}  // namespace widelimit::finite
