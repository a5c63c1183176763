#pragma once

/// Files that appear whole or not at all, and what a program leaves behind when it is stopped.
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/temporary_path.hpp"
