#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "widelimit/network/layer.hpp"

/// The table of the library's own layers: one row a kind. Network files are read by it, and the functions of Python,
/// the pages of the documentation, the colours of diagrams and the lists of the tests are made from it.
namespace widelimit::layers {

/// What a kind does in a network; diagrams have a colour for each.
enum class KindGroup {
  weights,
  activation,
  pooling,
  positions,
  graph,
  normalisation,
  dropout,
  attention,
  branches
};

/// "weights", "activation" and so on.
[[nodiscard]] std::string_view group_name(KindGroup group);

/// What stands in a field of a network file.
enum class FieldType {
  number,
  integer,
  boolean,
  text,
  numbers,        ///< A list.
  integers,       ///< A list, mostly one an axis.
  integers_null,  ///< A list in which null stands for what is left out.
  names,          ///< A list of names and integers.
  matrix,         ///< A list of rows, of numbers or of true and false.
  matrices,       ///< A list of such.
  object,         ///< Fields of its own, or the name of a kind (docs/network-format.md).
  layers          ///< Layers, or branches with layers.
};

/// "number", "list of integers" and so on.
[[nodiscard]] std::string_view type_name(FieldType type);

/// One field of a kind. Numbers are finite.
struct KindField {
  std::string name;
  FieldType type = FieldType::number;
  /// JSON text of the value that the field has where it is left out: empty if it must be there, null if `meaning` says
  /// what holds then.
  std::string default_value = {};
  /// Both included, unless `above_minimum`; of numbers and integers.
  double minimum = -std::numeric_limits<double>::infinity();
  double maximum = std::numeric_limits<double>::infinity();
  bool above_minimum = false;
  std::vector<std::string> words = {};  ///< The texts that there are.
  std::string meaning = {};             ///< A phrase without a full stop.
  bool by_name = false;                 ///< Functions of Python take it by name only.

  [[nodiscard]] bool required() const { return default_value.empty(); }
  /// Its range in words: ">= 0", "0 .. 64", "in (0, 1]"; empty where every value is one.
  [[nodiscard]] std::string range() const;
};

/// How neural-tangents calls a nonlinearity: stax.FUNCTION(arguments..., ignored=False...).
struct TangentsFunction {
  std::string function = {};                                        ///< Empty: it has none.
  std::vector<std::pair<std::string, std::string>> arguments = {};  ///< Its names, and those of the fields.
  std::vector<std::string> ignored = {};                            ///< Switches that change nothing here.
  std::string does = {};  ///< phi(x) in its names, where they differ.
};

/// How the expectations of a nonlinearity are computed.
enum class DualForm { none, closed, quadrature };

/// One kind of layer. Formulas are text: K and T are the NNGP and the NTK of two positions, p and q their variances.
struct LayerKind {
  std::string name;  ///< As in network files and in layers::NAME().
  KindGroup group = KindGroup::activation;
  std::vector<KindField> fields = {};
  std::string does = {};    ///< phi(x), or what it does to a value, without a full stop.
  std::string nngp = {};    ///< K' after it.
  std::string ntk = {};     ///< T' after it.
  std::string limits = {};  ///< What it refuses, and what it leaves; sentences.
  std::string cost = {};    ///< Of a pair of d positions each; a phrase.
  std::string source = {};  ///< Paper and equation or section.
  DualForm dual = DualForm::none;
  std::string example = "{}";  ///< JSON object of fields, not the defaults, that make a layer.
  TangentsFunction neural_tangents = {};
};

/// All of them, group by group. The reference stays valid.
[[nodiscard]] const std::vector<LayerKind>& builtin_kinds();

/// The row of a kind; null for a name that is none of the library's.
[[nodiscard]] const LayerKind* builtin_kind(std::string_view name);

/// A layer of a kind whose fields have their defaults. NetworkError for an unknown kind, and for one with fields that
/// must be given.
[[nodiscard]] Layer layer_of_kind(const std::string& name);

/// The JSON text of the row's example as a layer of a network file: {"layer": NAME, fields...}.
[[nodiscard]] std::string example_of(const LayerKind& kind);

}  // namespace widelimit::layers
