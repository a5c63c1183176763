#pragma once

/// Files that appear whole or not at all, what a program leaves behind when it is stopped, and files of strangers.
#include "widelimit/error.hpp"
#include "widelimit/files/folder_lock.hpp"
#include "widelimit/files/permissions.hpp"
#include "widelimit/files/regular_file.hpp"
#include "widelimit/files/replaced_together.hpp"
#include "widelimit/files/replacing_file.hpp"
#include "widelimit/files/temporary_path.hpp"
#include "widelimit/files/user_cache.hpp"
#include "widelimit/files/writing_places.hpp"
