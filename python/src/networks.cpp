#include "networks.hpp"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "kept_layers.hpp"
#include "python_activation.hpp"
#include "python_stage.hpp"
#include "saved_functions.hpp"
#include "widelimit/error.hpp"
#include "widelimit/layers/activations.hpp"
#include "widelimit/layers/branches.hpp"
#include "widelimit/layers/custom.hpp"
#include "widelimit/models/named_networks.hpp"
#include "widelimit/network/network.hpp"
#include "widelimit/network/network_file.hpp"
#include "widelimit/text/visible_text.hpp"

namespace widelimit::python {

namespace nb = nanobind;
using nb::literals::operator""_a;

namespace {

/// The layers of a network file.
Layers layers_from_json(const std::string& text) {
  return parse_network(R"({"widelimit": 1, "layers": [)" + text + "]}").layers();
}

std::string shown(const Network& network) {
  std::ostringstream text;
  text << network;
  // A name may hold what a terminal obeys.
  return visible_lines(text.str());
}

/// A layer as a network shows it, without its number: 'dense  weight_variance=2.0  bias_variance=0.0', and below that
/// what is inside.
std::string shown_alone(const Layer& layer) {
  const std::string whole = shown(Network({layer}));
  const std::size_t start = whole.find("0  ", whole.find('\n'));
  std::string text;
  for (std::size_t i = start + 3; i < whole.size(); ++i) {
    text += whole[i];
    if (whole[i] == '\n') i = std::min(whole.size() - 1, i + 5);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

Layer sum_of(const std::vector<std::pair<double, Layers>>& branches) {
  std::vector<layers::Branch> parts;
  for (const auto& [scale, inner] : branches) parts.push_back({scale, inner});
  return layers::sum(std::move(parts));
}

Layer product_of(const std::vector<std::pair<double, Layers>>& branches) {
  std::vector<layers::Branch> parts;
  for (const auto& [scale, inner] : branches) parts.push_back({scale, inner});
  return layers::product(std::move(parts));
}

Layer concat_of(const std::vector<std::pair<double, Layers>>& branches) {
  std::vector<layers::ConcatBranch> parts;
  for (const auto& [share, inner] : branches) parts.push_back({share, inner});
  return layers::concat(std::move(parts));
}

/// What a value is, for errors.
std::string value_in_words(nb::handle value) {
  if (nb::isinstance<Layer>(value)) return "a Layer; put it into brackets, [layer]";
  if (nb::isinstance<Network>(value)) return "a Network; write network.layers";
  const std::string type = nb::cast<std::string>(nb::getattr(value.type(), "__name__"));
  if (type == "function")
    return "the function " + nb::cast<std::string>(nb::getattr(value, "__name__")) + "; call it";
  return (std::string("aeiou").find(type[0]) == std::string::npos ? "a " : "an ") + type;
}

/// Layers that were given to a Network. TypeError that says which one is none.
KeptLayers layers_in(nb::handle given) {
  if (nb::isinstance<Layer>(given) || nb::isinstance<Network>(given) || nb::isinstance<nb::str>(given) ||
      !nb::hasattr(given, "__iter__"))
    throw nb::type_error(
        ("Network: layers: expected a list of layers, got " + value_in_words(given)).c_str());
  const nb::list list{nb::borrow<nb::object>(given)};
  for (std::size_t i = 0; i < list.size(); ++i)
    if (!nb::isinstance<Layer>(list[i]))
      throw nb::type_error(
          ("Network: layers[" + std::to_string(i) + "]: expected a Layer, got " + value_in_words(list[i]))
              .c_str());
  return nb::cast<KeptLayers>(list);
}

/// For a pair layer of a user's own; `leaves`: what its channels are.
StageRules rules_of(bool needs_gaussian, const std::string& leaves) {
  StageRules rules;
  if (needs_gaussian) rules.accepts = StageRules::Accepts::gaussian;
  if (leaves == "gaussian")
    rules.leaves = StageRules::Leaves::gaussian;
  else if (leaves == "as_it_was")
    rules.leaves = StageRules::Leaves::as_it_was;
  else if (leaves != "not_gaussian")
    throw ArgumentError("pair: leaves: expected gaussian, as_it_was or not_gaussian, got " + leaves);
  return rules;
}

/// What stands for a user's functions: what JAX reads of them, and how a file names them. Both may be empty.
struct OwnParameters {
  std::string digest, by_name;
};

/// What `make` makes of the parameters that stand for a user's function, or of none.
template <typename Make>
Layer own_layer(const OwnParameters& given, const Make& make) {
  if (given.digest.empty() && given.by_name.empty()) return make();
  auto parameters = nlohmann::ordered_json::object();
  if (!given.digest.empty()) parameters["formula"] = given.digest;
  if (!given.by_name.empty()) parameters["python"] = nlohmann::ordered_json::parse(given.by_name);
  return make(parameters);
}

void bind_layers(nb::module_& module) {
  nb::class_<Layer>(module, "Layer", nb::dynamic_attr(), "One layer of a network: an immutable value.")
      .def_prop_ro("kind", &Layer::kind, "The kind as network files write it, e.g. 'dense'.")
      .def(
          "__eq__", [](const Layer& left, const Layer& right) { return left == right; }, nb::is_operator(),
          nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__repr__", [](const Layer& layer) { return shown_alone(layer); });

  module.def(
      "layer_from_json", [](const std::string& text) { return layers_from_json(text).at(0); }, "text"_a);
  module.def("sum_of", &sum_of, "branches"_a);
  module.def("product_of", &product_of, "branches"_a);
  module.def("concat_of", &concat_of, "branches"_a);
  module.def("concat_positions_of", &layers::concat_positions, "axis"_a, "branches"_a);
  module.def("repeat_of", &layers::repeat, "times"_a, "layers"_a);
  module.def(
      "nonlinearity_from_dual",
      [](const std::string& kind, const HeldFunction& nngp, const HeldFunction* derivative,
         const HeldFunction* slopes, const std::string& digest, const std::string& by_name) {
        return own_layer({digest, by_name}, [&](const auto&... parameters) {
          return layers::nonlinearity(kind, activation_from_dual(nngp, derivative, slopes), parameters...);
        });
      },
      "kind"_a, "nngp"_a, "derivative"_a.none(), "slopes"_a.none(), "digest"_a, "by_name"_a);
  module.def(
      "nonlinearity_from_function",
      [](const std::string& kind, const HeldFunction& phi, const HeldFunction* derivative,
         const std::vector<double>& breakpoints, const std::string& digest, const std::string& by_name) {
        return own_layer({digest, by_name}, [&](const auto&... parameters) {
          return layers::nonlinearity(kind, activation_from_function(kind, phi, derivative, breakpoints),
                                      parameters...);
        });
      },
      "kind"_a, "phi"_a, "derivative"_a.none(), "breakpoints"_a, "digest"_a, "by_name"_a);
  module.def(
      "pair_from_function",
      [](const std::string& kind, const HeldFunction& transform, const HeldFunction* adjoint,
         bool needs_gaussian, const std::string& leaves, const std::string& digest,
         const std::string& by_name) {
        const auto stage = stage_from_function(transform, adjoint, rules_of(needs_gaussian, leaves));
        return own_layer({digest, by_name}, [&](const auto&... parameters) {
          return layers::pair_layer(kind, stage, nullptr, parameters...);
        });
      },
      "kind"_a, "transform"_a, "adjoint"_a.none(), "needs_gaussian"_a, "leaves"_a, "digest"_a, "by_name"_a);
}

/// They hold the functions of the whole network.
nb::list layers_of(nb::handle_t<Network> self) {
  nb::list layers;
  for (const Layer& layer : nb::cast<const Network&>(self).layers()) {
    const nb::object found = nb::cast(layer);
    keep(found, functions_of(self));
    layers.append(found);
  }
  return layers;
}

void bind_network(nb::module_& module) {
  nb::class_<Network>(
      module, "Network", nb::dynamic_attr(),
      "A named sequence of layers: an immutable value.\n\n"
      "Network(layers, name='') takes any layers; whether they fit each other and the inputs is "
      "checked when the network is applied (NetworkError).")
      .def(
          "__init__",
          [](nb::pointer_and_handle<Network> self, const nb::object& layers, std::string name) {
            KeptLayers given = layers_in(layers);
            new (self.p) Network(std::move(name), std::move(given.layers));
            keep(self.h, given.functions);
          },
          "layers"_a, "name"_a = "",
          nb::sig("def __init__(self, layers: collections.abc.Sequence[Layer], name: str = '') -> None"))
      .def_static(
          "from_json",
          [](const std::string& text, const nb::object& functions) {
            return read_by_functions(functions, [&] { return parse_network(text); });
          },
          "text"_a, "functions"_a = nb::none(),
          nb::sig("def from_json(text: str, functions: collections.abc.Mapping[str, "
                  "collections.abc.Callable[..., object]] | collections.abc.Iterable[str] | None = None) -> "
                  "Network"),
          "Reads the text of a network file (docs/network-format.md). functions: what layers of your own "
          "call, "
          "{'module:name': function}, or names of modules that may be imported for it (docs/python.md). "
          "DataError for text that is not JSON, NetworkError that names the field that is wrong.")
      .def_static(
          "read",
          [](const std::filesystem::path& file, const nb::object& functions) {
            return read_by_functions(functions, [&] { return read_network(file); });
          },
          "file"_a, "functions"_a = nb::none(),
          nb::sig("def read(file: str | os.PathLike, functions: collections.abc.Mapping[str, "
                  "collections.abc.Callable[..., object]] | collections.abc.Iterable[str] | None = None) -> "
                  "Network"),
          "Reads a network file; functions as in from_json(). DataError if it cannot be read, and the errors "
          "of from_json().")
      .def_static(
          "named", &models::named_network, "name"_a, "settings"_a = models::NetworkSettings{},
          "A named network of the library, e.g. Network.named('struct', {'depth': 4}); "
          "`widelimit networks` lists them with their options. ArgumentError names the networks, or the "
          "options of this one, if there is none with that name.")
      .def(
          "to_json", [](const Network& network) { return to_json(network); }, "The text of a network file.")
      .def(
          "write",
          [](const Network& network, const std::filesystem::path& file) { write_network(file, network); },
          "file"_a, "Writes a network file. DataError if it cannot be written.")
      .def_prop_ro("name", &Network::name, "The name in results; may be empty.")
      .def_prop_ro("layers", &layers_of, nb::sig("def layers(self) -> list[Layer]"),
                   "The layers, from the inputs on.")
      .def("describe", &Network::describe, "shape"_a,
           "One line for each layer with the shape of its inputs, for inputs of the given spatial shape, () "
           "for "
           "vectors. NetworkError names the layer that cannot take its input.")
      .def(
          "__eq__", [](const Network& left, const Network& right) { return left == right; },
          nb::is_operator(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__getstate__", [](const Network& network) { return to_json(network); })
      .def("__setstate__",
           [](Network& self, const std::string& text) { new (&self) Network(parse_network(text)); })
      .def("__repr__", &shown);
}

}  // namespace

void bind_networks(nb::module_& module) {
  bind_layers(module);
  bind_network(module);
}

}  // namespace widelimit::python
