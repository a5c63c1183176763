#pragma once

/// Signal propagation in random transformers (docs/theory/signal-propagation.md).
#include "widelimit/error.hpp"
#include "widelimit/propagation/attention_map.hpp"
#include "widelimit/propagation/block_map.hpp"
#include "widelimit/propagation/check_reference.hpp"
#include "widelimit/propagation/critical.hpp"
#include "widelimit/propagation/estimators.hpp"
#include "widelimit/propagation/exponents.hpp"
#include "widelimit/propagation/finite_transformer.hpp"
#include "widelimit/propagation/loss_predictor.hpp"
#include "widelimit/propagation/measured_layer.hpp"
#include "widelimit/propagation/mlp_map.hpp"
#include "widelimit/propagation/parameters.hpp"
#include "widelimit/propagation/phase_diagram.hpp"
#include "widelimit/propagation/repeated_block.hpp"
#include "widelimit/propagation/sampled_block.hpp"
