#include "kernel/case_composer.hpp"

#include <algorithm>
#include <cmath>

namespace widelimit::testing {
namespace {

using Json = nlohmann::json;

constexpr Index most_positions_of_a_case = 42;

Index output_size(Index size, Index window, Index stride, const std::string& padding) {
  return padding == "valid" ? (size - window) / stride + 1 : (size + stride - 1) / stride;
}

std::vector<Shape> behind(std::vector<Shape> shapes, const std::vector<Index>& window,
                          const std::vector<Index>& strides, const std::string& padding) {
  for (Shape& shape : shapes)
    for (std::size_t i = 0; i < shape.size(); ++i)
      shape[i] = output_size(shape[i], window[i], strides[i], padding);
  return shapes;
}

Json skip() { return {{"layers", Json::array()}}; }

}  // namespace

CaseComposer::CaseComposer(Draws& draws, CaseSetting setting)
    : draws_{draws},
      setting_{std::move(setting)},
      shapes_{setting_.shapes},
      width_{setting_.channels},
      on_nodes_{setting_.graphs} {}

bool CaseComposer::equal_shapes() const {
  return std::all_of(shapes_.begin(), shapes_.end(),
                     [&](const Shape& shape) { return shape == shapes_.front(); });
}

Index CaseComposer::shortest(std::size_t axis) const {
  Index size = shapes_.front()[axis];
  for (const Shape& shape : shapes_) size = std::min(size, shape[axis]);
  return size;
}

Index CaseComposer::longest(std::size_t axis) const {
  Index size = 0;
  for (const Shape& shape : shapes_) size = std::max(size, shape[axis]);
  return size;
}

Index CaseComposer::most_positions() const {
  Index count = 0;
  for (const Shape& shape : shapes_) count = std::max(count, position_count(shape));
  return count;
}

bool CaseComposer::take(std::vector<Shape> shapes) {
  for (const Shape& shape : shapes)
    if (position_count(shape) > most_positions_of_a_case) return false;
  if (shapes != shapes_) on_nodes_ = false;
  shapes_ = std::move(shapes);
  return true;
}

Json CaseComposer::compose() {
  Json layers = Json::array();
  if (setting_.to_one_position) to_one_position(layers);
  if (channels_ == Channels::raw && draws_.one_in(8)) layers.push_back(norm());
  centred_ = false;
  if (channels_ == Channels::raw && axes() > 0 && draws_.one_in(5)) layers.push_back(any_layer());
  if (channels_ == Channels::raw && draws_.below(8) != 0) layers.push_back(weights());
  const int count = 2 + draws_.below(5);
  for (int i = 0; i < count; ++i) {
    if (on_nodes_ && draws_.one_in(2)) layers.push_back(aggregate());
    layers.push_back(any_layer());
  }
  if (on_nodes_ && draws_.one_in(2)) layers.push_back(aggregate());
  if (axes() > 0) layers.push_back(readout());
  tail(layers);
  return layers;
}

void CaseComposer::to_one_position(Json& layers) {
  std::vector<Index> window;
  for (std::size_t axis = 0; axis < axes(); ++axis) window.push_back(longest(axis));
  const std::vector<Index> strides(axes(), 1 + draws_.below(2));
  if (draws_.one_in(6)) {
    centred_ = false;
    layers.push_back(
        {{"layer", "average_pool"}, {"window", window}, {"strides", strides}, {"padding", "valid"}});
    take(behind(shapes_, window, strides, "valid"));
    return;
  }
  layers.push_back(shaped_weights("conv", window, strides, "valid"));
}

Json CaseComposer::any_layer() {
  if ((channels_ == Channels::gaussian || channels_ == Channels::groups) && draws_.below(5) < 2)
    return activation();
  if (axes() == 0) {
    const Maker makers[] = {&CaseComposer::weights,  &CaseComposer::weights,       &CaseComposer::norm,
                            &CaseComposer::residual, &CaseComposer::repeated,      &CaseComposer::dropout,
                            &CaseComposer::gate,     &CaseComposer::channel_groups};
    return (this->*makers[draws_.below(8)])();
  }
  const Maker makers[] = {&CaseComposer::pooling,          &CaseComposer::norm,
                          &CaseComposer::attention,        &CaseComposer::attention,
                          &CaseComposer::residual,         &CaseComposer::residual,
                          &CaseComposer::channel_groups,   &CaseComposer::gate,
                          &CaseComposer::dropout,          &CaseComposer::slice,
                          &CaseComposer::image_resize,     &CaseComposer::positions_map,
                          &CaseComposer::concat_positions, &CaseComposer::repeated,
                          &CaseComposer::conv_transpose,   &CaseComposer::index,
                          &CaseComposer::weights,          &CaseComposer::weights,
                          &CaseComposer::weights,          &CaseComposer::weights};
  return (this->*makers[draws_.below(20)])();
}

Json CaseComposer::activation() {
  const bool groups = channels_ == Channels::groups;
  channels_ = Channels::other;
  const double a = draws_.number(0.5, 1.5), b = draws_.number(0.3, 1.2);
  switch (draws_.below(groups ? 27 : 28)) {
    case 0:
      return {{"layer", "abs"}};
    case 1:
      return {{"layer", "leaky_relu"}, {"slope", draws_.number(-0.5, 0.5)}};
    case 2:
      return {{"layer", "ab_relu"}, {"a", draws_.number(-1, 1)}, {"b", a}};
    case 3:
      return {{"layer", "identity"}};
    case 4:
      return {{"layer", "sign"}};
    case 5:
      return {{"layer", "erf"}};
    case 6:
      return {{"layer", "erf"}, {"a", a}, {"b", b}, {"c", 0.0}, {"d", draws_.number(-0.5, 0.5)}};
    case 7:
      if (most_positions() > 12) return {{"layer", "gelu"}};
      return {{"layer", "erf"},
              {"a", a},
              {"b", b},
              {"c", draws_.number(0.1, 0.6)},
              {"d", draws_.number(-0.5, 0.5)}};
    case 8:
      return {{"layer", "sigmoid_like"}};
    case 9:
      return {{"layer", "gabor"}};
    case 10:
      return {{"layer", "gelu"}};
    case 11:
      return {{"layer", "sin"}, {"a", a}, {"b", b}, {"c", draws_.number(-1, 1)}};
    case 12:
      return {{"layer", "cos"}, {"a", a}, {"b", b}, {"c", draws_.number(-1, 1)}};
    case 13:
      return {{"layer", "exp"}, {"a", a}, {"b", draws_.number(-0.3, 0.3)}};
    case 14:
      return {{"layer", "gaussian"}, {"a", a}, {"b", -b}};
    case 15:
      return {{"layer", "rbf"}, {"gamma", b}};
    case 16:
      return {{"layer", "monomial"}, {"degree", draws_.below(4)}};
    case 17:
      return {{"layer", "rectified_monomial"}, {"degree", draws_.below(4)}};
    case 18:
      return {{"layer", "polynomial"}, {"coefficients", {draws_.number(-1, 1), b, draws_.number(-0.5, 0.5)}}};
    case 19:
      return {{"layer", "hermite"}, {"degree", draws_.below(4)}};
    case 20:
    case 21:
      if (most_positions() > 12) return {{"layer", "relu"}};
      return {{"layer", draws_.one_of({"tanh", "sigmoid", "silu", "softplus"})}};
    case 22:
      return {{"layer", "rectified_monomial"}, {"degree", 0}};
    case 27:
      return {{"layer", "exp_normalized"}, {"gamma", b}, {"shift", draws_.number(-1.5, 0)}};
    default:
      return {{"layer", "relu"}};
  }
}

/// The parametrisation with its variances. Both may be 0, and biases tiny.
void CaseComposer::add_variances(Json& layer, Index channels) {
  layer["weight_variance"] = draws_.one_in(25) ? 0 : draws_.number(0.5, 2);
  const int biases = draws_.below(10);
  layer["bias_variance"] = biases < 5    ? 0.0
                           : biases == 5 ? std::pow(10.0, -6 - draws_.below(8))
                                         : draws_.number(0, 0.5);
  if (draws_.below(3) != 0) return;
  layer["parametrisation"] = "standard";
  layer["input_width"] = channels == 0 ? 1 + draws_.below(9) : channels;
  layer["width_scale"] = draws_.number(0.5, 2);
  layer["zero_biases"] = layer["bias_variance"] == 0.0 && draws_.one_in(4);
}

Json CaseComposer::shaped_weights(const char* kind, const std::vector<Index>& filter,
                                  const std::vector<Index>& strides, const std::string& padding) {
  Json layer{{"layer", kind}, {"filter", filter}, {"strides", strides}, {"padding", padding}};
  add_variances(layer, width_);
  take(behind(shapes_, filter, strides, padding));
  channels_ = Channels::gaussian;
  width_ = 0;
  return layer;
}

Json CaseComposer::weights() {
  if (axes() == 1 && draws_.one_in(6)) return recurrent();
  if (axes() > 0 && draws_.below(4) != 0) return convolution();
  Json layer{{"layer", "dense"}};
  add_variances(layer, width_);
  channels_ = Channels::gaussian;
  width_ = 0;
  return layer;
}

Json CaseComposer::recurrent() {
  Json layer{{"layer", "recurrent"},
             {"weight_variance", draws_.number(0.3, 1.5)},
             {"recurrent_variance", draws_.one_in(8) ? 0.0 : draws_.number(0.2, 1.2)},
             {"bias_variance", draws_.one_in(2) ? 0.0 : draws_.number(0.02, 0.3)},
             {"nonlinearity",
              draws_.one_of({"relu", "erf", "gelu", "tanh", "abs", "sigmoid_like", "identity", "sign"})},
             {"direction", draws_.one_of({"forward", "backward"})}};
  layer["nonlinearity"] = Json{{"layer", layer["nonlinearity"]}};
  channels_ = Channels::other;
  width_ = 0;
  return layer;
}

Json CaseComposer::convolution() {
  const std::string padding = draws_.one_of({"same", "valid", "circular"});
  std::vector<Index> filter, strides;
  for (std::size_t axis = 0; axis < axes(); ++axis) {
    const Index size = 1 + draws_.below(draws_.one_in(4) ? 6 : 3);
    filter.push_back(padding == "valid" || draws_.one_in(2) ? std::min(size, shortest(axis)) : size);
    strides.push_back(draws_.one_in(10) ? 1 + draws_.below(4) : draws_.one_in(4) ? 2 : 1);
  }
  return shaped_weights(draws_.one_in(6) ? "local_conv" : "conv", filter, strides, padding);
}

/// Leaves the shape as it is.
Json CaseComposer::keeping_weights() {
  if (axes() == 0 || draws_.one_in(3)) {
    Json layer{{"layer", "dense"}};
    add_variances(layer, width_);
    channels_ = Channels::gaussian;
    width_ = 0;
    return layer;
  }
  std::vector<Index> filter;
  for (std::size_t axis = 0; axis < axes(); ++axis) filter.push_back(1 + draws_.below(3));
  const std::string padding = draws_.one_of({"same", "circular"});
  return shaped_weights(draws_.one_in(6) ? "local_conv" : "conv", filter, std::vector<Index>(axes(), 1),
                        padding);
}

Json CaseComposer::conv_transpose() {
  std::vector<Index> filter, strides;
  std::vector<Shape> grown = shapes_;
  const std::string padding = draws_.one_of({"same", "valid", "circular"});
  for (std::size_t axis = 0; axis < axes(); ++axis) {
    filter.push_back(1 + draws_.below(4));
    strides.push_back(draws_.one_in(2) ? 1 : 2);
    for (Shape& shape : grown)
      shape[axis] = shape[axis] * strides[axis] +
                    (padding == "valid" ? std::max<Index>(filter[axis] - strides[axis], 0) : 0);
  }
  Json layer{{"layer", "conv_transpose"}, {"filter", filter}, {"strides", strides}, {"padding", padding}};
  if (!take(grown)) return weights();
  add_variances(layer, width_);
  channels_ = Channels::gaussian;
  width_ = 0;
  return layer;
}

Json CaseComposer::pooling() {
  const std::string padding = draws_.one_of({"same", "valid", "circular"});
  std::vector<Index> window, strides;
  for (std::size_t axis = 0; axis < axes(); ++axis) {
    const Index size = 1 + draws_.below(4);
    window.push_back(padding == "same" ? size : std::min(size, shortest(axis)));
    strides.push_back(draws_.one_in(3) ? 2 : 1);
  }
  take(behind(shapes_, window, strides, padding));
  Json layer{{"layer", draws_.one_in(3) ? "sum_pool" : "average_pool"},
             {"window", window},
             {"strides", strides},
             {"padding", padding}};
  if (layer["layer"] == "average_pool" && draws_.one_in(2)) layer["normalize_edges"] = true;
  return layer;
}

Json CaseComposer::slice() {
  std::vector<Shape> cut = shapes_;
  Json begin = Json::array(), end = Json::array(), step = Json::array();
  for (std::size_t axis = 0; axis < axes(); ++axis) {
    const Index stride = draws_.one_of<Index>({1, 1, 2, -1, -2});
    const Index drop = draws_.below(static_cast<int>(shortest(axis)));
    const bool from_begin = draws_.one_in(2);
    const Json dropped = drop == 0 ? Json() : Json(drop), kept_end = drop == 0 ? Json() : Json(-drop);
    // Backwards a slice begins with the last position.
    begin.push_back(stride > 0 ? (from_begin ? dropped : Json())
                               : (from_begin || drop == 0 ? Json() : Json(-1 - drop)));
    end.push_back(stride > 0 ? (from_begin ? Json() : kept_end)
                             : (from_begin && drop > 0 ? Json(drop - 1) : Json()));
    step.push_back(stride);
    for (Shape& shape : cut) {
      const Index left = shape[axis] - drop, size = std::abs(stride);
      shape[axis] = (left + size - 1) / size;
    }
  }
  take(cut);
  return {{"layer", "slice"}, {"begin", begin}, {"end", end}, {"step", step}};
}

/// Seldom of a sequence, which has no positions after it.
Json CaseComposer::index() {
  if (axes() == 1 && draws_.below(4) != 0) return activation_or_weights();
  const auto axis = static_cast<std::size_t>(draws_.below(static_cast<int>(axes())));
  const auto size = static_cast<int>(shortest(axis));
  const Index position = draws_.below(2 * size) - size;
  std::vector<Shape> left = shapes_;
  for (Shape& shape : left) shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
  take(left);
  return {{"layer", "index"}, {"axis", axis}, {"position", position}};
}

Json CaseComposer::activation_or_weights() {
  return channels_ == Channels::gaussian || channels_ == Channels::groups ? activation() : weights();
}

Json CaseComposer::image_resize() {
  std::vector<Shape> resized = shapes_;
  Json size = Json::array();
  for (std::size_t axis = 0; axis < axes(); ++axis) {
    const Index wanted = draws_.one_in(4) ? -1 : 1 + draws_.below(7);
    size.push_back(wanted);
    for (Shape& shape : resized)
      if (wanted != -1) shape[axis] = wanted;
  }
  if (!take(resized)) return pooling();
  return {{"layer", "image_resize"},
          {"size", size},
          {"method", draws_.one_of({"linear", "nearest", "cubic"})},
          {"antialias", draws_.one_in(2)}};
}

/// Nothing cancels: sums of what is equal would be 0 in exact arithmetic only.
Json CaseComposer::matrix(Index rows, Index columns) {
  Json result = Json::array();
  for (Index a = 0; a < rows; ++a) {
    Json row = Json::array();
    for (Index i = 0; i < columns; ++i) row.push_back(draws_.one_in(2) ? 0.0 : draws_.number(0, 1.2));
    row[static_cast<std::size_t>(draws_.below(static_cast<int>(columns)))] = 0.7;
    result.push_back(row);
  }
  return result;
}

Json CaseComposer::positions_map() {
  if (!equal_shapes()) return slice();
  const Shape shape = shapes_.front();
  if (draws_.one_in(2)) {
    const Index rows = 1 + draws_.below(6);
    Json layer{{"layer", "positions_map"}, {"matrix", matrix(rows, position_count(shape))}};
    Shape after{rows};
    if (rows % 2 == 0 && draws_.one_in(2)) {
      after = {2, rows / 2};
      layer["shape"] = after;
    }
    take(std::vector<Shape>(shapes_.size(), after));
    return layer;
  }
  Shape after;
  Json matrices = Json::array();
  for (const Index size : shape) {
    after.push_back(1 + draws_.below(static_cast<int>(std::min<Index>(size + 1, 4))));
    matrices.push_back(matrix(after.back(), size));
  }
  if (!take(std::vector<Shape>(shapes_.size(), after))) return slice();
  return {{"layer", "positions_map"}, {"matrices", matrices}};
}

Json CaseComposer::norm() {
  const bool may_centre = channels_ == Channels::gaussian || (channels_ == Channels::raw && centred_);
  Json names = Json::array({"channels"});
  if (draws_.one_in(3))
    names.push_back("space");
  else
    for (std::size_t axis = 0; axis < axes(); ++axis)
      if (draws_.one_in(3)) names.push_back(axis);
  if (channels_ == Channels::groups) channels_ = Channels::other;
  if (axes() == 0 && names.size() > 1) names = Json::array({"channels"});
  return {{"layer", may_centre && draws_.one_in(2) ? "layer_norm" : "rms_norm"},
          {"axes", names},
          {"epsilon", draws_.one_of({1e-12, 1e-6, 1e-3, 0.1})}};
}

Json CaseComposer::dropout() {
  if (channels_ == Channels::raw) return weights();
  channels_ = Channels::other;
  return {{"layer", "dropout"}, {"keep", draws_.number(0.4, 1)}};
}

Json CaseComposer::aggregate() {
  if (channels_ == Channels::raw) channels_ = Channels::other;
  return {{"layer", "aggregate"},
          {"normalise", setting_.directed ? draws_.one_of({"none", "mean"})
                                          : draws_.one_of({"none", "mean", "symmetric"})},
          {"self_loops", draws_.one_in(2)}};
}

/// A branch that carries fresh weights and leaves the shape as it is.
Json CaseComposer::weighted_branch() {
  Json layers = Json::array();
  if (on_nodes_ && draws_.one_in(3)) layers.push_back(aggregate());
  if (channels_ == Channels::gaussian && draws_.one_in(2)) layers.push_back(activation());
  layers.push_back(keeping_weights());
  if (draws_.one_in(3)) {
    layers.push_back(activation());
    layers.push_back(keeping_weights());
  }
  if (draws_.one_in(5)) layers.push_back(norm());
  if (on_nodes_ && draws_.one_in(3)) layers.push_back(aggregate());
  return layers;
}

Json CaseComposer::residual() {
  const Channels before = channels_;
  const Index width = width_;
  const auto body = [&] {
    channels_ = before;
    width_ = width;
    return weighted_branch();
  };
  Json branches = Json::array();
  const bool skips = draws_.below(3) != 0;
  branches.push_back(skips ? skip() : Json{{"layers", body()}});
  branches[0]["scale"] = draws_.number(0.3, 1.2);
  branches.push_back({{"scale", draws_.number(-1, 1)}, {"layers", body()}});
  if (draws_.one_in(5)) branches.push_back({{"scale", 0.6}, {"layers", body()}});
  channels_ = skips && before != Channels::gaussian ? Channels::other : Channels::gaussian;
  width_ = 0;
  return {{"layer", "sum"}, {"branches", branches}};
}

Json CaseComposer::gate() {
  Json layer = residual();
  layer["layer"] = "product";
  channels_ = Channels::other;
  return layer;
}

Json CaseComposer::channel_groups() {
  const Channels before = channels_;
  const Index width = width_;
  Json branches = Json::array();
  for (const double share : {0.25, 0.75}) {
    channels_ = before;
    width_ = width;
    branches.push_back({{"share", share}, {"layers", weighted_branch()}});
  }
  channels_ = Channels::groups;
  width_ = 0;
  return {{"layer", "concat"}, {"branches", branches}};
}

Json CaseComposer::concat_positions() {
  // Inputs of several shapes are refused: the place of one branch depends on the sizes of the others.
  if (!equal_shapes()) return weights();
  const auto axis = static_cast<std::size_t>(draws_.below(static_cast<int>(axes())));
  const std::vector<Shape> before_shapes = shapes_;
  const Channels before = channels_;
  const Index width = width_;
  std::vector<Shape> grown = shapes_;
  for (Shape& shape : grown) shape[axis] *= 2;
  for (const Shape& shape : grown)
    if (position_count(shape) > most_positions_of_a_case) return weights();
  const bool skips = draws_.one_in(2), cuts = draws_.one_in(2);
  Json first = Json::array();
  if (!skips) first = weighted_branch();
  channels_ = before;
  width_ = width;
  Json second = weighted_branch();
  if (cuts) {  // A single position, such as a class token.
    Json begin(axes(), nullptr), end(axes(), nullptr);
    begin[axis] = 0;
    end[axis] = 1;
    second.push_back({{"layer", "slice"}, {"begin", begin}, {"end", end}});
  }
  for (std::size_t i = 0; i < grown.size(); ++i)
    grown[i][axis] = before_shapes[i][axis] + (cuts ? 1 : before_shapes[i][axis]);
  take(grown);
  channels_ = skips && before != Channels::gaussian ? Channels::other : Channels::gaussian;
  width_ = 0;
  Json branches = Json::array({{{"layers", first}}, {{"layers", second}}});
  if (draws_.one_in(2)) std::swap(branches[0], branches[1]);
  return {{"layer", "concat"}, {"axis", axis}, {"branches", branches}};
}

Json CaseComposer::repeated() {
  Json layers = Json::array();
  if (channels_ != Channels::gaussian) return weights();
  layers.push_back(activation());
  layers.push_back(keeping_weights());
  return {{"layer", "repeat"}, {"times", 1 + draws_.below(3)}, {"layers", layers}};
}

Json CaseComposer::readout() {
  const bool flattens = equal_shapes() && draws_.one_in(3);
  if (flattens && width_ != 0) width_ *= position_count(shapes_.front());
  const char* kind = flattens ? "flatten" : draws_.one_in(2) ? "global_sum_pool" : "global_average_pool";
  take(std::vector<Shape>(shapes_.size(), Shape{}));
  return {{"layer", kind}};
}

void CaseComposer::tail(Json& layers) {
  const int depth = draws_.below(3);
  for (int i = 0; i < depth; ++i) {
    layers.push_back(weights());
    if (draws_.one_in(3)) layers.push_back(norm());
    layers.push_back(activation());
    if (draws_.one_in(3)) layers.push_back(residual());
  }
  if (draws_.below(4) != 0) layers.push_back(weights());
}

}  // namespace widelimit::testing
