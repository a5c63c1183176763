#include "widelimit/specialization/first_times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "specialization/run_pieces.hpp"
#include "widelimit/error.hpp"
#include "widelimit/specialization/flow.hpp"
#include "widelimit/specialization/order_parameters.hpp"
#include "widelimit/specialization/seeds.hpp"
#include "widelimit/specialization/sgd.hpp"
#include "widelimit/specialization/trained_heads.hpp"

namespace widelimit::specialization {

namespace {

// A flow is looked at in pieces of this many steps, so that it can end once all times are known.
constexpr Index steps_a_piece = 500;
// Steps of SGD cost more, so that its pieces are shorter.
constexpr Index sgd_steps_a_piece = 50;

/// A single head has no other from which it could differ, and specialises at no time.
void require_several_heads(const char* where, Index heads) {
  if (heads < 2)
    throw ArgumentError(
        fmt::format("{}: heads H must be at least 2, got {}: a single head has no other to "
                    "differ from, and specialises at no time",
                    where, heads));
}

/// The start of a flow in place of SGD's in D dimensions.
MatchedFlow flow_start(const TimedFlows& flows, double eta, std::uint64_t seed) {
  const Index heads = flows.heads, features = flows.prior.features();
  const GramState start =
      random_gram_start(flows.activation, heads, features, flows.dimension, eta, seed + start_seed);
  return matched_flow(
      {0, 0,
       order_parameters(start.gram.topLeftCorner(heads, heads), start.gram.topRightCorner(heads, features),
                        start.gram.bottomRightCorner(features, features)),
       start.b, start.v});
}

/// First times at which quantities_of(m), of the overlaps along the flow from a random start, exceed delta.
template <typename Quantities>
FirstTimes first_times(const TimedFlows& flows, double eta, std::uint64_t seed, std::size_t count,
                       const Quantities& quantities_of) {
  const MatchedFlow matched = flow_start(flows, eta, seed);
  const auto samples = SampleSet<float>::draw(flows.prior, {flows.tokens, flows.heads, flows.samples}, seed,
                                              {flows.symmetry, matched.spike_root, flows.run});
  FlowOptions options;
  options.step = flows.step;
  options.stop_gradient = flows.stop_gradient;
  HeadParameters state = matched.start;
  return times_by_pieces({flows.steps, steps_a_piece, flows.run}, count,
                         [&](const RunPiece& piece, FirstTimes& found) {
                           options.steps = piece.steps;
                           options.record = piece.record;
                           options.run = piece.run;
                           const auto points = gradient_flow(flows.activation, state, samples, options);
                           for (const FlowPoint& point : points)
                             found.see(static_cast<double>(piece.done) * flows.step + point.tau,
                                       // The flow runs with orthonormal spikes; m_w p^(1/2) are the overlaps
                                       // with the spikes themselves.
                                       quantities_of(point.parameters.m * matched.spike_root), flows.delta);
                           // A flow at rest moves no further, so that later pieces are spared.
                           if (points.back().gradient < flows.stop_gradient) found.end = RunEnd::rest;
                           state = points.back().parameters;
                         });
}

/// max_split(), one quantity.
Vector<double> split_of(const Matrix<double>& m) { return Vector<double>::Constant(1, max_split(m)); }

/// The state of SGD at a recorded point.
GramState state_at(const SgdPoint& point, Index dimension) {
  const OrderParameters& overlaps = point.overlaps;
  const Index heads = overlaps.q.rows(), features = overlaps.p.rows();
  GramState state{Matrix<double>(heads + features, heads + features), point.b, point.v, dimension};
  state.gram << overlaps.q, overlaps.m, overlaps.m.transpose(), overlaps.p;
  return state;
}

}  // namespace

FirstTimes head_split_time_of_sgd(const TimedFlows& flows, Index batch, double eta, std::uint64_t seed) {
  require_several_heads("head_split_time_of_sgd", flows.heads);
  GramState state = random_gram_start(flows.activation, flows.heads, flows.prior.features(), flows.dimension,
                                      eta, seed + start_seed);
  SgdOptions options;
  options.tokens = flows.tokens;
  // If no size is given, a batch has D sequences.
  options.batch = batch == 0 ? flows.dimension : batch;
  options.gamma = flows.step;
  return times_by_pieces({flows.steps, sgd_steps_a_piece, flows.run}, 1,
                         [&](const RunPiece& piece, FirstTimes& found) {
                           options.steps = piece.steps;
                           options.record = piece.record;
                           options.run = piece.run;
                           // Each piece continues the run with sequences that have not been seen.
                           options.seed = batch_seed(seed, piece);
                           const auto points = gram_sgd(flows.activation, flows.prior, state, options);
                           for (const SgdPoint& point : points)
                             found.see(static_cast<double>(piece.done) * flows.step + point.tau,
                                       split_of(point.overlaps.m), flows.delta);
                           state = state_at(points.back(), flows.dimension);
                         });
}

FirstTimes class_split_times_of_sgd(HeadActivation activation, Index heads, const ImageTask& task, double eta,
                                    double delta, const SgdOptions& options) {
  require_several_heads("class_split_times_of_sgd", heads);
  HeadVectors state =
      random_start(activation, heads, 1, task.dimension(), eta, options.seed + start_seed).heads;
  SgdOptions one = options;
  return times_by_pieces({options.steps, sgd_steps_a_piece, options.run},
                         static_cast<std::size_t>(task.class_means().rows()),
                         [&](const RunPiece& piece, FirstTimes& found) {
                           one.steps = piece.steps;
                           one.record = piece.record;
                           one.run = piece.run;
                           one.seed = batch_seed(options.seed, piece);
                           const auto points = image_sgd(activation, task, state, one);
                           for (const ImageSgdPoint& point : points)
                             // The quantities are splits of the heads' overlaps with the class means.
                             found.see(static_cast<double>(piece.done) * one.gamma + point.tau,
                                       feature_splits(point.heads.k * task.class_means().transpose()), delta);
                           state = points.back().heads;
                         });
}

bool FirstTimes::all() const {
  return std::all_of(times.begin(), times.end(), [](const auto& time) { return time.has_value(); });
}

void FirstTimes::see(double tau, const Vector<double>& values, double bound) {
  for (std::size_t k = 0; k < times.size(); ++k)
    if (!times[k] && values[static_cast<Index>(k)] > bound) times[k] = tau;
}

FirstTimes head_split_time(const TimedFlows& flows, double eta, std::uint64_t seed) {
  require_several_heads("head_split_time", flows.heads);
  return first_times(flows, eta, seed, 1, split_of);
}

FirstTimes feature_split_times(const TimedFlows& flows, double eta, std::uint64_t seed) {
  require_several_heads("feature_split_times", flows.heads);
  return first_times(flows, eta, seed, static_cast<std::size_t>(flows.prior.features()),
                     [](const Matrix<double>& m) { return feature_splits(m); });
}

}  // namespace widelimit::specialization
