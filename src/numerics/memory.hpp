#pragma once

#include <string>
#include <string_view>

namespace widelimit::numerics {

/// Bytes that this process can have at most: memory and swap of the machine, or less under a limit of the
/// address space (ulimit -v).
double available_memory();

/// "3.2 GiB".
std::string memory_text(double bytes);

/// To be called before large memory is taken, which most systems grant and then kill the process for. Throws
/// ArgumentError("WHERE: WHAT takes 298 GiB of memory, 15.6 GiB are available; ADVICE").
void require_memory(std::string_view where, std::string_view what, double bytes, std::string_view advice);

}  // namespace widelimit::numerics
