#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "widelimit/layers/kinds.hpp"
#include "widelimit/network/field_reader.hpp"
#include "widelimit/network/layer.hpp"

/// The rows of the table of built-in layers: each file of layers has those of its kinds.
namespace widelimit::layers {

/// The fields of one layer of a file, read as the row of its kind says: a field that is left out has the row's value.
/// Reading a field that the row does not have is a mistake of the library and throws std::logic_error.
class KindFields {
 public:
  KindFields(FieldReader& reader, const LayerKind& kind) : reader_{reader}, kind_{kind} {}

  [[nodiscard]] double number(std::string_view name);
  [[nodiscard]] Index integer(std::string_view name);
  [[nodiscard]] bool boolean(std::string_view name);
  /// One of the row's words.
  [[nodiscard]] std::string word(std::string_view name);
  [[nodiscard]] std::vector<double> numbers(std::string_view name);
  /// Empty if the field is left out.
  [[nodiscard]] std::vector<Index> integers(std::string_view name);

  [[nodiscard]] bool has(std::string_view name);
  /// The reader, for fields of other forms. The row must have a field `name`.
  [[nodiscard]] FieldReader& reader(std::string_view name);
  [[noreturn]] void fail(std::string_view name, const std::string& message);

 private:
  const KindField& field(std::string_view name) const;
  template <typename T>
  [[nodiscard]] T default_of(const KindField& field) const;

  FieldReader& reader_;
  const LayerKind& kind_;
};

/// A kind, and the function that makes a layer of its fields.
struct KindRow {
  LayerKind kind;
  Layer (*make)(KindFields& fields);
};

using KindRows = std::vector<KindRow>;

/// All rows, and the functions of the files that add them, in the order of the pages.
const KindRows& kind_rows();

void add_dense_kinds(KindRows& rows);
void add_convolution_kinds(KindRows& rows);
void add_transposed_convolution_kinds(KindRows& rows);
void add_activation_kinds(KindRows& rows);
void add_exp_normalized_kinds(KindRows& rows);
void add_matern_kinds(KindRows& rows);
void add_pooling_kinds(KindRows& rows);
void add_position_kinds(KindRows& rows);
void add_graph_kinds(KindRows& rows);
void add_norm_kinds(KindRows& rows);
void add_dropout_kinds(KindRows& rows);
void add_attention_kinds(KindRows& rows);
void add_recurrent_kinds(KindRows& rows);
void add_branch_kinds(KindRows& rows);

}  // namespace widelimit::layers
