#pragma once

/// Gram matrices in stores on disk: computed tile by tile, by any number of processes, over any number of runs.
#include "widelimit/store/arithmetic_facts.hpp"
#include "widelimit/store/gram_store.hpp"
#include "widelimit/store/input_facts.hpp"
#include "widelimit/store/sha256.hpp"
#include "widelimit/store/stored_gram.hpp"
#include "widelimit/store/tile_grid.hpp"
