#include "widelimit/specialization/samples.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "numerics/float_normals.hpp"
#include "numerics/tasks.hpp"
#include "specialization/checks.hpp"
#include "specialization/sample_tiles.hpp"
#include "widelimit/numerics/memory.hpp"

namespace widelimit::specialization {

namespace {

/// Numbers of a sample set; refused before they are taken if the machine has no room for them.
void check_memory(const SampleShape& shape, Index features, std::size_t scalar_bytes) {
  const double numbers = static_cast<double>(shape.count) * static_cast<double>(shape.tokens) *
                         (static_cast<double>(features) + static_cast<double>(shape.heads));
  numerics::require_memory("samples",
                           fmt::format("{} samples of {} tokens, {} features and {} heads", shape.count,
                                       shape.tokens, features, shape.heads),
                           numbers * static_cast<double>(scalar_bytes), "take fewer samples");
}

void check_values(const SampleValues& values) {
  constexpr const char* where = "samples";
  require_at_least(where, "count n", values.count, 1);
  require_at_least(where, "tokens L", values.tokens, 1);
  require_at_least(where, "features F", values.features, 1);
  require_at_least(where, "noises H", values.noises, 0);
  const auto check_size = [&](const char* field, std::size_t got, Index expected) {
    if (got != static_cast<std::size_t>(expected))
      throw ArgumentError(fmt::format("samples: {} must have {} entries, got {}", field, expected, got));
  };
  check_size("chi_star", values.chi_star.size(), values.count * values.tokens * values.features);
  check_size("xi", values.xi.size(), values.count * values.tokens * values.noises);
  check_size("eps", values.eps.size(), values.count);
  if (!values.weights.empty()) check_size("weights", values.weights.size(), values.count);
  for (const Index eps : values.eps) require_index("samples", "eps", eps, values.tokens);
  for (const double weight : values.weights) require_positive(where, "weights", weight);
  const auto flat = [](const std::vector<double>& list) {
    return Eigen::Map<const Vector<double>>(list.data(), static_cast<Index>(list.size()));
  };
  require_finite(where, "chi_star", flat(values.chi_star));
  require_finite(where, "xi", flat(values.xi));
}

template <typename Scalar>
using TilesPointer = std::shared_ptr<const SampleTiles<Scalar>>;

template <typename Scalar>
TilesPointer<Scalar> tiles_from(const SampleValues& values) {
  check_values(values);
  const SampleShape shape{values.tokens, values.noises, values.count};
  check_memory(shape, values.features, sizeof(Scalar));
  auto tiles = std::make_shared<SampleTiles<Scalar>>(shape, values.features);
  for (Index i = 0; i < values.count; ++i) {
    if (!values.weights.empty())
      tiles->weight(i) = static_cast<Scalar>(values.weights[static_cast<std::size_t>(i)]);
    for (Index l = 0; l < values.tokens; ++l) {
      const Index eps = values.eps[static_cast<std::size_t>(i)];
      // The kernel expects the relevant token first, so it changes places with token 0.
      const Index token = l == eps ? 0 : l == 0 ? eps : l;
      const Index from = i * values.tokens + l;
      for (Index f = 0; f < values.features; ++f)
        tiles->value(i, token, f) =
            static_cast<Scalar>(values.chi_star[static_cast<std::size_t>(from * values.features + f)]);
      for (Index h = 0; h < values.noises; ++h)
        tiles->value(i, token, values.features + h) =
            static_cast<Scalar>(values.xi[static_cast<std::size_t>(from * values.noises + h)]);
    }
  }
  return tiles;
}

template <typename Scalar>
void draw_block(SampleTiles<Scalar>& tiles, const Prior& prior, std::uint64_t seed,
                const Matrix<double>& theta_map, Index block) {
  constexpr Index block_size = SampleTiles<Scalar>::samples_a_block,
                  tile = SampleTiles<Scalar>::samples_a_tile;
  const Index first = block * block_size, last = std::min(first + block_size, tiles.shape().count);
  // A whole block is drawn even if the set ends within it, so that the first samples do not depend on n.
  std::vector<float> normals(static_cast<std::size_t>(block_size / tile * tiles.tile_size()));
  // Even streams have the normal numbers of all tokens, odd ones the features theta of the relevant token.
  const auto stream = static_cast<std::uint64_t>(block);
  numerics::fill_normals(normals, seed, 2 * stream);
  std::copy_n(normals.begin(), (last - first + tile - 1) / tile * tiles.tile_size(),
              tiles.tile(first / tile));
  numerics::RandomStream random(seed, 2 * stream + 1);
  Vector<double> theta;
  for (Index i = first; i < last; ++i) {
    prior.sample(random, theta);
    // theta_w = p^(1/2) theta for spikes that are not orthonormal (matched_flow()).
    if (theta_map.size() > 0) theta = (theta_map * theta).eval();
    for (Index f = 0; f < tiles.features(); ++f) {
      Scalar& signal = tiles.value(i, 0, f);
      signal = static_cast<Scalar>(static_cast<double>(signal) + theta[f]);
    }
  }
}

/// The number of symmetries under which a set is to be closed: cyclic shifts of the heads times changes of sign
/// of each symmetric feature.
Index group_size(const Prior& prior, Index heads, SampleSymmetry symmetry) {
  if (symmetry == SampleSymmetry::plain) return 1;
  constexpr Index largest_group = 1'000'000;
  Index group = heads;
  for (Index f = 0; f < prior.features() && group <= largest_group; ++f)
    if (prior.symmetric_in(f)) group *= 2;
  if (group > largest_group)
    throw ArgumentError(
        fmt::format("samples: symmetry closed expects at most {} symmetries of heads and features, {} heads "
                    "and {} features have more; take plain",
                    largest_group, heads, prior.features()));
  return group;
}

/// The images of every sample under the group, one after the other.
template <typename Scalar>
TilesPointer<Scalar> closed_under_symmetries(const SampleTiles<Scalar>& plain, const Prior& prior,
                                             Index group, const RunControl& run) {
  const auto [tokens, heads, count] = plain.shape();
  const Index features = plain.features(), noises = heads;
  auto closed = std::make_shared<SampleTiles<Scalar>>(SampleShape{tokens, noises, count * group}, features);
  std::vector<Index> symmetric;
  for (Index f = 0; f < features; ++f)
    if (prior.symmetric_in(f)) symmetric.push_back(f);
  // `element` is a pattern of signs times H plus a shift.
  const auto flips = [&symmetric, noises](Index element, Index f) {
    const auto place = std::find(symmetric.begin(), symmetric.end(), f);
    return place != symmetric.end() && (((element / noises) >> (place - symmetric.begin())) & 1);
  };
  const auto fill_images = [&, sequence = tokens](Index base) {
    for (Index element = 0; element < group; ++element) {
      const Index i = base * group + element, shift = element % noises;
      for (Index l = 0; l < sequence; ++l) {
        for (Index f = 0; f < features; ++f)
          closed->value(i, l, f) = flips(element, f) ? -plain.value(base, l, f) : plain.value(base, l, f);
        for (Index h = 0; h < noises; ++h)
          closed->value(i, l, features + h) = plain.value(base, l, features + (h + shift) % noises);
      }
    }
  };
  numerics::for_each_task(count, {.stop = run.stop}, fill_images);
  return closed;
}

}  // namespace

template <typename Scalar>
SampleSet<Scalar>::SampleSet(std::shared_ptr<const SampleTiles<Scalar>> tiles)
    : tiles_{std::move(tiles)},
      shape_{tiles_->shape()},
      features_{tiles_->features()},
      weight_sum_{static_cast<double>(shape_.count)},
      squared_weight_sum_{weight_sum_} {}

template <typename Scalar>
SampleSet<Scalar>::SampleSet(const SampleValues& values) : SampleSet(tiles_from<Scalar>(values)) {
  if (values.weights.empty()) return;
  weight_sum_ = squared_weight_sum_ = 0;
  for (const double weight : values.weights) {
    weight_sum_ += weight;
    squared_weight_sum_ += weight * weight;
  }
}

template <typename Scalar>
SampleSet<Scalar> SampleSet<Scalar>::draw(const Prior& prior, const SampleShape& shape, std::uint64_t seed,
                                          const SampleOptions& options) {
  require_at_least("samples", "tokens L", shape.tokens, 1);
  require_at_least("samples", "heads H", shape.heads, 1);
  require_at_least("samples", "count n", shape.count, 1);
  const Index features = prior.features();
  if (options.theta_map.size() > 0)
    require_shape("samples", "theta_map", options.theta_map, features, features);
  check_memory(shape, features, sizeof(Scalar));
  const Index group = group_size(prior, shape.heads, options.symmetry);
  // The set is completed: it has at least as many samples as asked for, a multiple of the group's size.
  const Index drawn = (shape.count + group - 1) / group;
  return numerics::on_threads(options.run.threads, [&] {
    auto tiles =
        std::make_shared<SampleTiles<Scalar>>(SampleShape{shape.tokens, shape.heads, drawn}, features);
    const Index blocks =
        (drawn + SampleTiles<Scalar>::samples_a_block - 1) / SampleTiles<Scalar>::samples_a_block;
    numerics::for_each_task(blocks, {.stop = options.run.stop},
                            [&](Index block) { draw_block(*tiles, prior, seed, options.theta_map, block); });
    if (options.symmetry == SampleSymmetry::plain) return SampleSet(std::move(tiles));
    return SampleSet(closed_under_symmetries<Scalar>(*tiles, prior, group, options.run));
  });
}

template <typename Scalar>
Scalar SampleSet<Scalar>::value(Index sample, Index token, Index row) const {
  return tiles_->value(sample, token, row);
}

template <typename Scalar>
double SampleSet<Scalar>::weight(Index sample) const {
  return static_cast<double>(tiles_->weight(sample));
}

template class SampleSet<float>;
template class SampleSet<double>;

}  // namespace widelimit::specialization
