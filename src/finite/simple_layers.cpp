#include "finite/simple_layers.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "finite/affine_layers.hpp"
#include "finite/norm_layers.hpp"
#include "finite/pointwise_layers.hpp"
#include "finite/pooling_layers.hpp"
#include "layers/activation_layer.hpp"
#include "layers/layer_parts.hpp"
#include "layers/padding_names.hpp"
#include "network/layer_model.hpp"
#include "widelimit/network/field_reader.hpp"

namespace widelimit::finite {
namespace {

template <typename Scalar>
using LayerPtr = std::unique_ptr<FiniteLayer<Scalar>>;

template <typename Scalar>
using Maker = std::function<LayerPtr<Scalar>(const Site&, FieldReader&)>;

Window window_of(FieldReader& fields, const char* sizes) {
  return {fields.integers(sizes), fields.integers("strides"),
          layers::padding_from_name(fields.text("padding"))};
}

AffineVariances variances_of(FieldReader& fields) {
  return {fields.number("weight_variance"), fields.number("bias_variance")};
}

layers::NormOptions norm_options_of(FieldReader& fields) {
  const bool space = fields.texts("axes").size() == 2;
  return {space ? layers::NormAxes::channels_and_space : layers::NormAxes::channels,
          fields.number("epsilon")};
}

template <typename Scalar>
Maker<Scalar> convolution_maker(Sharing sharing) {
  return [sharing](const Site& site, FieldReader& fields) {
    return make_convolution<Scalar>(site, window_of(fields, "filter"), variances_of(fields), sharing);
  };
}

template <typename Scalar>
Maker<Scalar> pooling_maker(PoolWeight weight) {
  return [weight](const Site& site, FieldReader& fields) {
    return make_pooling<Scalar>(site, window_of(fields, "window"), weight);
  };
}

template <typename Scalar>
Maker<Scalar> global_pooling_maker(PoolWeight weight) {
  return [weight](const Site& site, FieldReader&) { return make_global_pooling<Scalar>(site, weight); };
}

template <typename Scalar>
Maker<Scalar> norm_maker(Centring centring) {
  return [centring](const Site& site, FieldReader& fields) {
    return make_norm<Scalar>(site, centring, norm_options_of(fields));
  };
}

template <typename Scalar>
const std::map<std::string, Maker<Scalar>>& makers() {
  static const std::map<std::string, Maker<Scalar>> table{
      {"dense",
       [](const Site& site, FieldReader& fields) { return make_dense<Scalar>(site, variances_of(fields)); }},
      {"conv", convolution_maker<Scalar>(Sharing::shared)},
      {"local_conv", convolution_maker<Scalar>(Sharing::by_position)},
      {"average_pool", pooling_maker<Scalar>(PoolWeight::mean)},
      {"sum_pool", pooling_maker<Scalar>(PoolWeight::sum)},
      {"global_average_pool", global_pooling_maker<Scalar>(PoolWeight::mean)},
      {"global_sum_pool", global_pooling_maker<Scalar>(PoolWeight::sum)},
      {"flatten", [](const Site& site, FieldReader&) { return make_flatten<Scalar>(site); }},
      {"layer_norm", norm_maker<Scalar>(Centring::mean)},
      {"rms_norm", norm_maker<Scalar>(Centring::none)},
      {"dropout", [](const Site& site,
                     FieldReader& fields) { return make_dropout<Scalar>(site, fields.number("keep")); }},
  };
  return table;
}

template <typename Scalar>
LayerPtr<Scalar> made_by(const FiniteCounterpart& counterpart, const Site& site) {
  if constexpr (std::is_same_v<Scalar, float>)
    return counterpart.make_float(site);
  else
    return counterpart.make_double(site);
}

}  // namespace

bool chooses_channels(const Layer& layer) {
  if (const auto counterpart = layers::finite_counterpart_of(layer))
    return counterpart->channels() == OutputChannels::chosen;
  constexpr std::array kinds{"dense", "conv", "local_conv", "attention"};
  return std::any_of(kinds.begin(), kinds.end(), [&](const char* kind) { return is_builtin(layer, kind); });
}

template <typename Scalar>
LayerPtr<Scalar> make_simple_layer(const Layer& layer, const Site& site) {
  if (const auto* activation = dynamic_cast<const layers::ActivationLayer*>(&layer.model()))
    return make_activation<Scalar>(site, activation->activation());
  if (const auto counterpart = layers::finite_counterpart_of(layer))
    return made_by<Scalar>(*counterpart, site);
  if (!layer.model().is_builtin()) return nullptr;
  const auto maker = makers<Scalar>().find(layer.kind());
  if (maker == makers<Scalar>().end()) return nullptr;
  const nlohmann::json object = layer.model().fields();
  FieldReader fields(object, layer.kind());
  return maker->second(site, fields);
}

template LayerPtr<float> make_simple_layer(const Layer&, const Site&);
template LayerPtr<double> make_simple_layer(const Layer&, const Site&);

}  // namespace widelimit::finite
