#pragma once

/// Windows stand in network/ since 0.2; this path stays for programs written for 0.1.
#include "widelimit/network/window.hpp"
