#pragma once

#include <map>
#include <string>

#include "widelimit/network/field_reader.hpp"
#include "widelimit/network/network_file.hpp"

namespace widelimit::layers {

using LayerReaders = std::map<std::string, LayerReader>;

/// The readers of all built-in kinds.
LayerReaders builtin_layer_readers();

// One function a file of layers; each adds its kinds.
void add_dense_kinds(LayerReaders& readers);
void add_convolution_kinds(LayerReaders& readers);
void add_transposed_convolution_kinds(LayerReaders& readers);
void add_position_kinds(LayerReaders& readers);
void add_pooling_kinds(LayerReaders& readers);
void add_activation_kinds(LayerReaders& readers);
void add_exp_normalized_kinds(LayerReaders& readers);
void add_norm_kinds(LayerReaders& readers);
void add_dropout_kinds(LayerReaders& readers);
void add_branch_kinds(LayerReaders& readers);
void add_attention_kinds(LayerReaders& readers);
void add_graph_kinds(LayerReaders& readers);

}  // namespace widelimit::layers
