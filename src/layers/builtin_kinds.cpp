#include "layers/builtin_kinds.hpp"

namespace widelimit::layers {

LayerReaders builtin_layer_readers() {
  LayerReaders readers;
  add_dense_kinds(readers);
  add_convolution_kinds(readers);
  add_transposed_convolution_kinds(readers);
  add_position_kinds(readers);
  add_pooling_kinds(readers);
  add_activation_kinds(readers);
  add_exp_normalized_kinds(readers);
  add_norm_kinds(readers);
  add_dropout_kinds(readers);
  add_branch_kinds(readers);
  add_graph_kinds(readers);
  add_attention_kinds(readers);
  return readers;
}

}  // namespace widelimit::layers
