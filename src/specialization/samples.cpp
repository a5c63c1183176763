#include "widelimit/specialization/samples.hpp"

#include <tbb/parallel_for.h>

#include <algorithm>
#include <new>

#include "checks.hpp"
#include "normals.hpp"
#include "numerics/memory.hpp"

namespace widelimit::specialization {

using Eigen::Index;

namespace {

constexpr std::align_val_t kCacheLine{64};

/// Numbers of a sample set; refused before they are taken if the machine has no room for them.
void check_memory(const SampleShape& shape, Index features, std::size_t scalar_bytes) {
  const double numbers = static_cast<double>(shape.count) * static_cast<double>(shape.tokens) *
                         (static_cast<double>(features) + static_cast<double>(shape.heads));
  numerics::require_memory("samples",
                           fmt::format("{} samples of {} tokens, {} features and {} heads", shape.count,
                                       shape.tokens, features, shape.heads),
                           numbers * static_cast<double>(scalar_bytes), "take fewer samples");
}

template <typename Scalar>
std::shared_ptr<Scalar[]> allocate_zeros(Index size) {
  const auto bytes = static_cast<std::size_t>(size) * sizeof(Scalar);
  auto* memory = static_cast<Scalar*>(::operator new[](bytes, kCacheLine));
  std::shared_ptr<Scalar[]> owner(memory, [](Scalar* values) { ::operator delete[](values, kCacheLine); });
  std::fill_n(memory, size, Scalar{0});
  return owner;
}

void check_values(const SampleValues& values) {
  constexpr const char* where = "samples";
  check_at_least(where, "count n", values.count, 1);
  check_at_least(where, "tokens L", values.tokens, 1);
  check_at_least(where, "features F", values.features, 1);
  check_at_least(where, "noises H", values.noises, 0);
  const auto check_size = [&](const char* field, std::size_t got, Index expected) {
    if (got != static_cast<std::size_t>(expected))
      throw ArgumentError(fmt::format("samples: {} must have {} entries, got {}", field, expected, got));
  };
  check_size("chi_star", values.chi_star.size(), values.count * values.tokens * values.features);
  check_size("xi", values.xi.size(), values.count * values.tokens * values.noises);
  check_size("eps", values.eps.size(), values.count);
  if (!values.weights.empty()) check_size("weights", values.weights.size(), values.count);
  for (const Index eps : values.eps)
    if (eps < 0 || eps >= values.tokens)
      throw ArgumentError(fmt::format("samples: eps must be in [0, {}), got {}", values.tokens, eps));
  for (const double weight : values.weights) check_positive(where, "weights", weight);
  const auto flat = [](const std::vector<double>& list) {
    return Eigen::Map<const Vector<double>>(list.data(), static_cast<Index>(list.size()));
  };
  check_finite(where, "chi_star", flat(values.chi_star));
  check_finite(where, "xi", flat(values.xi));
}

}  // namespace

template <typename Scalar>
SampleSet<Scalar>::SampleSet(const SampleShape& shape, Index features)
    : count_{shape.count},
      tokens_{shape.tokens},
      features_{features},
      noises_{shape.heads},
      weight_sum_{static_cast<double>(shape.count)},
      squared_weight_sum_{static_cast<double>(shape.count)},
      values_{(check_memory(shape, features, sizeof(Scalar)), allocate_zeros<Scalar>(tiles() * tile_size()))},
      weights_{allocate_zeros<Scalar>(tiles() * kTile)} {
  std::fill_n(weights_.get(), count_, Scalar{1});
}

template <typename Scalar>
SampleSet<Scalar>::SampleSet(const SampleValues& values)
    : SampleSet((check_values(values), SampleShape{values.tokens, values.noises, values.count}),
                values.features) {
  if (!values.weights.empty()) {
    weight_sum_ = squared_weight_sum_ = 0;
    for (Index i = 0; i < count_; ++i) {
      const double weight = values.weights[static_cast<std::size_t>(i)];
      weights_[i] = static_cast<Scalar>(weight);
      weight_sum_ += weight;
      squared_weight_sum_ += weight * weight;
    }
  }
  for (Index i = 0; i < count_; ++i)
    for (Index l = 0; l < tokens_; ++l) {
      const Index eps = values.eps[static_cast<std::size_t>(i)];
      const Index token = l == eps ? 0 : l == 0 ? eps : l;
      const auto from = static_cast<std::size_t>(i * tokens_ + l);
      for (Index f = 0; f < features_; ++f)
        values_[place(i, token, f)] = static_cast<Scalar>(
            values.chi_star[from * static_cast<std::size_t>(features_) + static_cast<std::size_t>(f)]);
      for (Index h = 0; h < noises_; ++h)
        values_[place(i, token, features_ + h)] = static_cast<Scalar>(
            values.xi[from * static_cast<std::size_t>(noises_) + static_cast<std::size_t>(h)]);
    }
}

template <typename Scalar>
void SampleSet<Scalar>::draw_block(const Prior& prior, std::uint64_t seed, const Matrix<double>& theta_map,
                                   Index block) {
  const Index first = block * kBlock, last = std::min(first + kBlock, count_);
  const Index tiles = (last - first + kTile - 1) / kTile;
  // A whole block is drawn even if the set ends within it, so that the first samples do not depend on n.
  std::vector<float> normals(static_cast<std::size_t>(kBlock / kTile * tile_size()));
  const auto stream = static_cast<std::uint64_t>(block);
  fill_normals(normals, seed, 2 * stream);
  std::copy_n(normals.begin(), tiles * tile_size(), values_.get() + first / kTile * tile_size());
  numerics::RandomStream random(seed, 2 * stream + 1);
  Vector<double> theta;
  for (Index i = first; i < last; ++i) {
    prior.sample(random, theta);
    if (theta_map.size() > 0) theta = (theta_map * theta).eval();
    for (Index f = 0; f < features_; ++f) {
      Scalar& signal = values_[place(i, 0, f)];
      signal = static_cast<Scalar>(static_cast<double>(signal) + theta[f]);
    }
  }
}

template <typename Scalar>
SampleSet<Scalar> SampleSet<Scalar>::draw(const Prior& prior, const SampleShape& shape, std::uint64_t seed,
                                          const SampleOptions& options) {
  check_at_least("samples", "tokens L", shape.tokens, 1);
  check_at_least("samples", "heads H", shape.heads, 1);
  check_at_least("samples", "count n", shape.count, 1);
  const Index features = prior.features();
  if (options.theta_map.size() > 0)
    check_shape("samples", "theta_map", options.theta_map, features, features);
  check_memory(shape, features, sizeof(Scalar));

  Index group = 1;
  if (options.symmetry == SampleSymmetry::closed) {
    constexpr Index largest_group = 1'000'000;
    group = shape.heads;
    for (Index f = 0; f < features && group <= largest_group; ++f)
      if (prior.symmetric_in(f)) group *= 2;
    if (group > largest_group)
      throw ArgumentError(fmt::format(
          "samples: symmetry closed expects at most {} symmetries of heads and features, {} heads "
          "and {} features have more; take plain",
          largest_group, shape.heads, features));
  }
  SampleShape base = shape;
  base.count = (shape.count + group - 1) / group;
  SampleSet set(base, features);
  tbb::parallel_for(Index{0}, (set.count_ + kBlock - 1) / kBlock,
                    [&](Index block) { set.draw_block(prior, seed, options.theta_map, block); });
  if (options.symmetry == SampleSymmetry::plain) return set;
  return set.closed_under_symmetries(prior, group, base.count * group);
}

template <typename Scalar>
SampleSet<Scalar> SampleSet<Scalar>::closed_under_symmetries(const Prior& prior, Index group,
                                                             Index wanted) const {
  SampleSet closed(SampleShape{tokens_, noises_, wanted}, features_);
  std::vector<Index> symmetric;
  for (Index f = 0; f < features_; ++f)
    if (prior.symmetric_in(f)) symmetric.push_back(f);
  tbb::parallel_for(Index{0}, count_, [&](Index base) {
    for (Index element = 0; element < group; ++element) {
      const Index i = base * group + element, shift = element % noises_;
      for (Index l = 0; l < tokens_; ++l) {
        for (Index f = 0; f < features_; ++f) closed.values_[closed.place(i, l, f)] = value(base, l, f);
        for (std::size_t k = 0; k < symmetric.size(); ++k)
          if (((element / noises_) >> k) & 1) {
            Scalar& flipped = closed.values_[closed.place(i, l, symmetric[k])];
            flipped = -flipped;
          }
        for (Index h = 0; h < noises_; ++h)
          closed.values_[closed.place(i, l, features_ + h)] =
              value(base, l, features_ + (h + shift) % noises_);
      }
    }
  });
  return closed;
}

template class SampleSet<float>;
template class SampleSet<double>;

}  // namespace widelimit::specialization
