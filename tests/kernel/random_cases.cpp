#include "kernel/random_cases.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "kernel/case_composer.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::testing {
namespace {

using Json = nlohmann::json;
using Array = xt::xarray<double>;

/// What the inputs of a case have in common.
struct Batches {
  CaseSetting setting;
  bool ragged = false;
  bool by_lengths = false;  ///< Sequences in one padded array.
  std::size_t first = 3;    ///< Inputs of the first batch.
};

constexpr std::size_t inputs_of_a_case = 5;

Shape any_shape(Draws& draws, int axes) {
  switch (axes) {
    case 0:
      return {};
    case 1:
      return {1 + draws.below(12)};
    case 2:
      return draws.one_of<Shape>(
          {{4, 5}, {5, 3}, {1, 6}, {6, 1}, {3, 3}, {2, 2}, {5, 5}, {1, 1}, {4, 4}, {6, 6}});
    default:
      return draws.one_of<Shape>({{2, 3, 3}, {2, 2, 2}, {3, 1, 4}, {1, 2, 3}});
  }
}

/// Mostly few, sometimes one, now and then beyond the numbers at which products of features are taken otherwise.
Index any_channels(Draws& draws) {
  if (draws.one_in(4)) return 1;
  if (draws.one_in(4)) return 1 + draws.below(65);
  return 2 + draws.below(3);
}

Batches any_batches(Draws& draws) {
  Batches batches;
  const int kind = draws.below(12);
  const int axes = draws.one_of({0, 1, 1, 2, 2, 2, 3});
  CaseSetting& setting = batches.setting;
  setting.channels = any_channels(draws);
  setting.graphs = kind == 0 || kind == 1;
  setting.directed = kind == 1;
  setting.masked = kind == 2 || kind == 3;
  setting.to_one_position = kind == 4;
  batches.ragged = kind == 5 || kind == 6 || (setting.graphs && draws.one_in(2));
  const int spatial = setting.graphs ? 1 : kind <= 6 ? std::max(1, axes) : axes;
  batches.by_lengths = batches.ragged && !setting.graphs && spatial == 1 && draws.one_in(2);
  const Shape shape = any_shape(draws, spatial);
  for (std::size_t i = 0; i < inputs_of_a_case; ++i)
    setting.shapes.push_back(batches.ragged ? any_shape(draws, spatial) : shape);
  return batches;
}

/// Two places after the point: numbers of floats, of which sums have no roundings.
double any_number(Draws& draws) {
  double sum = 0;
  for (int i = 0; i < 6; ++i) sum += draws.below(256) - 127.5;
  return std::round(sum / 2) / 128;
}

/// [positions, channels], row-major.
Matrix<double> any_features(Draws& draws, Index positions, Index channels) {
  Matrix<double> features(positions, channels);
  for (double& number : features.reshaped<Eigen::RowMajor>()) number = any_number(draws);
  return features;
}

InputKinds any_kinds(Draws& draws) {
  InputKinds kinds;
  if (draws.one_in(3)) return kinds;
  kinds.zeros = draws.one_in(3);
  kinds.constant = draws.one_in(5);
  kinds.symmetric = draws.one_in(5);
  kinds.duplicates = draws.one_in(4);
  kinds.multiples = draws.one_in(5);
  kinds.repeated = draws.one_in(5);
  kinds.scales = draws.one_in(6);
  return kinds;
}

bool is_at_border(Index flat, const Shape& shape) {
  for (std::size_t i = shape.size(); i-- > 0;) {
    const Index at = flat % shape[i];
    if (at == 0 || at == shape[i] - 1) return true;
    flat /= shape[i];
  }
  return false;
}

void make_zeros(Matrix<double>& all, Matrix<double>& border, const Shape& shape) {
  all.setZero();
  if (shape.empty()) {
    border.leftCols(border.cols() / 2).setZero();
    return;
  }
  for (Index a = 0; a < border.rows(); ++a)
    if (is_at_border(a, shape)) border.row(a).setZero();
}

void apply_kinds(Draws& draws, const InputKinds& kinds, const std::vector<Shape>& shapes,
                 std::vector<Matrix<double>>& inputs) {
  if (kinds.constant) inputs[1].rowwise() = inputs[1].row(0).eval();
  if (kinds.symmetric)
    for (Index a = 0; a < inputs[0].rows() / 2; ++a)
      inputs[0].row(inputs[0].rows() - 1 - a) = inputs[0].row(a);
  if (kinds.repeated && inputs[4].rows() > 2) {
    inputs[4].row(1) = inputs[4].row(0);
    inputs[4].row(2) = 2 * inputs[4].row(0);
  }
  if (kinds.zeros) make_zeros(inputs[2], inputs[3], shapes[3]);
  if (kinds.duplicates) {
    if (shapes[1] == shapes[0]) inputs[1] = inputs[0];
    if (shapes[4] == shapes[0]) inputs[4] = inputs[0];
  }
  if (kinds.multiples && shapes[3] == shapes[0]) inputs[3] = draws.one_of({-2.0, 0.5, 3.0, -1.0}) * inputs[0];
  if (!kinds.scales) return;
  inputs[0] *= 1024;
  inputs[4] /= 1024;
}

std::vector<InputGraph> any_graphs(Draws& draws, const Batches& batches, std::size_t begin, std::size_t end) {
  std::vector<InputGraph> graphs;
  for (std::size_t i = begin; i < end; ++i) {
    const Index nodes = batches.setting.shapes[i][0];
    Matrix<double> adjacency = Matrix<double>::Zero(nodes, nodes);
    for (double& weight : adjacency.reshaped())
      if (draws.one_in(4)) weight = draws.number(0.2, 1.5);
    for (Index node = 0; node < nodes; ++node) adjacency(node, (node + 1) % nodes) = 0.5;
    if (!batches.setting.directed) adjacency = (adjacency + adjacency.transpose()).eval();
    graphs.push_back(InputGraph::from_adjacency(adjacency));
  }
  return graphs;
}

std::vector<std::size_t> dimensions_of(std::size_t count, const Shape& shape, Index channels) {
  std::vector<std::size_t> dimensions(shape.begin(), shape.end());
  if (count > 0) dimensions.insert(dimensions.begin(), count);
  if (channels > 0) dimensions.push_back(static_cast<std::size_t>(channels));
  return dimensions;
}

Inputs<double> with_mask(Draws& draws, const Inputs<double>& inputs, const Shape& shape) {
  xt::xarray<bool> mask(dimensions_of(static_cast<std::size_t>(inputs.size()), shape, 0));
  const int percent = draws.one_of({40, 70, 90});
  for (bool& counts : mask) counts = draws.below(100) < percent;
  const Index positions = position_count(shape);
  for (Index i = 0; i < inputs.size(); ++i)
    mask.data()[i * positions + draws.below(static_cast<int>(positions))] = true;
  return {inputs, mask};
}

/// What stands after the ends of sequences is never read.
Inputs<double> padded(const std::vector<Matrix<double>>& features) {
  std::vector<Index> lengths;
  for (const auto& input : features) lengths.push_back(input.rows());
  const Index longest = *std::max_element(lengths.begin(), lengths.end());
  Array array(dimensions_of(features.size(), {longest}, features.front().cols()));
  array.fill(1e200);
  for (std::size_t i = 0; i < features.size(); ++i)
    std::copy(features[i].data(), features[i].data() + features[i].size(),
              array.data() + static_cast<Index>(i) * longest * features[i].cols());
  return {Inputs<double>(std::move(array)), lengths};
}

Inputs<double> batch_of(Draws& draws, const Batches& batches, const std::vector<Matrix<double>>& inputs,
                        std::size_t begin, std::size_t end) {
  const std::vector<Matrix<double>> features(inputs.begin() + static_cast<std::ptrdiff_t>(begin),
                                             inputs.begin() + static_cast<std::ptrdiff_t>(end));
  const CaseSetting& setting = batches.setting;
  if (batches.by_lengths) return padded(features);
  if (batches.ragged) {
    std::vector<Array> arrays;
    for (std::size_t i = begin; i < end; ++i) {
      arrays.emplace_back(dimensions_of(0, setting.shapes[i], setting.channels));
      std::copy(inputs[i].data(), inputs[i].data() + inputs[i].size(), arrays.back().data());
    }
    const Inputs<double> plain(std::move(arrays));
    return setting.graphs ? Inputs<double>(plain, any_graphs(draws, batches, begin, end)) : plain;
  }
  Array array(dimensions_of(features.size(), setting.shapes.front(), setting.channels));
  double* to = array.data();
  for (const auto& input : features) to = std::copy(input.data(), input.data() + input.size(), to);
  const Inputs<double> plain(std::move(array));
  if (setting.graphs) return {plain, any_graphs(draws, batches, begin, end)};
  // One batch in four has no mask beside one that has.
  if (setting.masked && (begin == 0 || draws.below(4) != 0))
    return with_mask(draws, plain, setting.shapes.front());
  return plain;
}

void add_layer_tags(const Json& layers, std::set<std::string>& tags) {
  for (const Json& layer : layers) {
    std::string tag = layer["layer"];
    if (tag == "attention") tag += " " + layer["scaling"].get<std::string>();
    if (layer.contains("axis") && tag == "concat") tag = "concat of positions";
    tags.insert(tag);
    if (layer.value("parametrisation", "ntk") == "standard") tags.insert("standard parametrisation");
    if (layer.value("weight_variance", 1.0) == 0) tags.insert("weight_variance 0");
    for (const char* option : {"rotary", "alibi", "window", "prefix", "mask", "positions"})
      if (layer["layer"] == "attention" && layer.contains(option))
        tags.insert(std::string("attention ") + option);
    if (layer.contains("layers")) add_layer_tags(layer["layers"], tags);
    if (!layer.contains("branches")) continue;
    for (const Json& branch : layer["branches"]) add_layer_tags(branch["layers"], tags);
  }
}

std::vector<std::string> tags_of(const Batches& batches, const InputKinds& kinds, const Json& layers) {
  const CaseSetting& setting = batches.setting;
  const std::pair<bool, const char*> of_inputs[] = {{setting.graphs, "graphs"},
                                                    {setting.masked, "masks"},
                                                    {batches.ragged, "ragged"},
                                                    {setting.channels == 1, "one channel"},
                                                    {setting.to_one_position, "to one position"},
                                                    {kinds.zeros, "zeros"},
                                                    {kinds.constant, "constant"},
                                                    {kinds.symmetric, "symmetric"},
                                                    {kinds.duplicates, "duplicates"},
                                                    {kinds.multiples, "multiples"},
                                                    {kinds.repeated, "repeated positions"},
                                                    {kinds.scales, "scales apart"}};
  std::set<std::string> tags;
  for (const auto& [holds, name] : of_inputs)
    if (holds) tags.insert(name);
  add_layer_tags(layers, tags);
  return {tags.begin(), tags.end()};
}

}  // namespace

RandomCase random_case(unsigned seed) {
  Draws draws(seed);
  const Batches batches = any_batches(draws);
  const InputKinds kinds = any_kinds(draws);
  std::vector<Matrix<double>> inputs;
  for (const Shape& shape : batches.setting.shapes)
    inputs.push_back(any_features(draws, position_count(shape), batches.setting.channels));
  apply_kinds(draws, kinds, batches.setting.shapes, inputs);
  const Inputs<double> x1 = batch_of(draws, batches, inputs, 0, batches.first),
                       x2 = batch_of(draws, batches, inputs, batches.first, inputs_of_a_case);
  const Json layers = CaseComposer(draws, batches.setting).compose();
  const Json file{{"widelimit", 1}, {"name", "case " + std::to_string(seed)}, {"layers", layers}};
  return {parse_network(file.dump()), x1, x2, kinds, tags_of(batches, kinds, layers)};
}

template <typename Scalar>
Inputs<Scalar> with_numbers(const Inputs<double>& inputs, const InputNumber& number) {
  std::vector<xt::xarray<Scalar>> arrays;
  for (Index i = 0; i < inputs.size(); ++i) {
    arrays.emplace_back(dimensions_of(0, inputs.shape(i), inputs.channels()));
    for (std::size_t entry = 0; entry < arrays.back().size(); ++entry)
      arrays.back().data()[entry] = static_cast<Scalar>(number(i, static_cast<Index>(entry)));
  }
  const auto in_one = [&] {
    xt::xarray<Scalar> array(dimensions_of(arrays.size(), inputs.shape(), inputs.channels()));
    Scalar* to = array.data();
    for (const auto& input : arrays) to = std::copy(input.data(), input.data() + input.size(), to);
    return Inputs<Scalar>(std::move(array));
  };
  if (inputs.is_masked()) {
    xt::xarray<bool> mask(dimensions_of(arrays.size(), inputs.shape(), 0));
    bool* to = mask.data();
    for (Index i = 0; i < inputs.size(); ++i)
      for (const std::uint8_t counts : inputs.mask(i)) *to++ = counts != 0;
    return {in_one(), mask};
  }
  const Inputs<Scalar> plain = inputs.is_ragged() ? Inputs<Scalar>(std::move(arrays)) : in_one();
  if (inputs.graphs().empty()) return plain;
  return {plain, std::vector<InputGraph>(inputs.graphs().begin(), inputs.graphs().end())};
}

template Inputs<float> with_numbers(const Inputs<double>& inputs, const InputNumber& number);
template Inputs<double> with_numbers(const Inputs<double>& inputs, const InputNumber& number);

Inputs<float> in_float(const Inputs<double>& inputs) {
  return with_numbers<float>(
      inputs, [&](Index i, Index entry) { return inputs[i][static_cast<std::size_t>(entry)]; });
}

}  // namespace widelimit::testing
