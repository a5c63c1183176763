// Finite networks: the forward pass of a deep attention network, and the three ways to an empirical NTK for
// vectors, images and sequences.
#include <benchmark/benchmark.h>

#include <xtensor/xarray.hpp>

#include "widelimit/finite/empirical_kernel.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/attention.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/convolution.hpp"
#include "widelimit/layers/dense.hpp"
#include "widelimit/layers/pooling.hpp"
#include "widelimit/numerics/random_stream.hpp"

namespace {

using namespace widelimit;
using namespace widelimit::layers;

template <typename Scalar>
xt::xarray<Scalar> random_inputs(const std::vector<std::size_t>& dimensions) {
  xt::xarray<Scalar> x = xt::zeros<Scalar>(dimensions);
  numerics::RandomStream stream(1);
  for (Scalar& number : x) number = static_cast<Scalar>(stream.normal());
  return x;
}

/// 16 attention layers of 256 channels and 8 heads on 64 tokens.
template <typename Scalar>
void forward_of_16_attention_layers(benchmark::State& state) {
  const Network network({dense(), repeat(16, {attention()}), global_average_pool(), dense()});
  const finite::FiniteNetwork<Scalar> sample(network, {{64}, 32}, {.hidden = 256, .outputs = 1, .layers = {}},
                                             {.count = 8}, 1);
  const auto x = random_inputs<Scalar>({1, 64, 32});
  for (auto _ : state) benchmark::DoNotOptimize(sample.forward(x));
}
BENCHMARK(forward_of_16_attention_layers<float>)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(forward_of_16_attention_layers<double>)->Unit(benchmark::kMillisecond)->UseRealTime();

void ntk(benchmark::State& state, const Network& network, const finite::Form& form,
         finite::NtkMethod method) {
  const finite::FiniteNetwork<double> sample(network, form, {.hidden = 256, .outputs = 1, .layers = {}}, {},
                                             1, 1);
  std::vector<std::size_t> dimensions{16};
  for (const Index size : form.shape) dimensions.push_back(static_cast<std::size_t>(size));
  dimensions.push_back(static_cast<std::size_t>(form.channels));
  const auto x = random_inputs<double>(dimensions);
  finite::NtkOptions options;
  options.method = method;
  for (auto _ : state) benchmark::DoNotOptimize(finite::empirical_ntk<double>(sample, x, options));
}

void add_ntk(const std::string& name, const Network& network, const finite::Form& form) {
  const std::pair<const char*, finite::NtkMethod> methods[] = {
      {"automatic", finite::NtkMethod::automatic},
      {"jacobian_contraction", finite::NtkMethod::jacobian_contraction},
      {"structured", finite::NtkMethod::structured},
      {"vector_products", finite::NtkMethod::vector_products}};
  for (const auto& [method_name, method] : methods)
    benchmark::RegisterBenchmark(
        ("ntk of 16 inputs/" + name + "/" + method_name).c_str(),
        [network, form, method = method](benchmark::State& state) { ntk(state, network, form, method); })
        ->Unit(benchmark::kMillisecond);
}

}  // namespace

int main(int argc, char** argv) {
  const Layer conv3 = conv({.filter = {3, 3}, .strides = {}});
  add_ntk("vectors, 3 dense", Network({dense(), relu(), dense(), relu(), dense()}), {{}, 32});
  add_ntk("8 x 8 images, 2 convolutions", Network({conv3, relu(), conv3, relu(), flatten(), dense()}),
          {{8, 8}, 3});
  add_ntk("16 tokens, attention", Network({dense(), attention(), relu(), global_average_pool(), dense()}),
          {{16}, 32});
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
