#pragma once

/// Results of experiments as values: tables, pictures, and the rows of which commands are made.
#include "widelimit/results/experiment.hpp"
#include "widelimit/results/picture.hpp"
#include "widelimit/results/results.hpp"
#include "widelimit/results/table.hpp"
