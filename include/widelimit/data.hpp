#pragma once

/// Data sets, their readers and generators, and the preprocessing of inputs.
#include "widelimit/data/cifar10.hpp"
#include "widelimit/data/csv.hpp"
#include "widelimit/data/graph_folder.hpp"
#include "widelimit/data/imdb.hpp"
#include "widelimit/data/labelled_images.hpp"
#include "widelimit/data/labelled_texts.hpp"
#include "widelimit/data/mnist.hpp"
#include "widelimit/data/npy.hpp"
#include "widelimit/data/number_format.hpp"
#include "widelimit/data/preprocessing.hpp"
#include "widelimit/data/synthetic_images.hpp"
#include "widelimit/data/synthetic_reviews.hpp"
#include "widelimit/data/tokenizer.hpp"
#include "widelimit/data/word_sequences.hpp"
#include "widelimit/data/word_vectors.hpp"
#include "widelimit/error.hpp"
