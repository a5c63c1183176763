#pragma once

#include <cstddef>

namespace widelimit::numerics {

/// Asks the system to back memory that is about to be written with large pages (2 MiB), where it has some to give: the
/// first write to each of its small pages would interrupt the computation, and a matrix whose columns are written needs
/// one for every row. What is in the memory stays as it is. Does nothing for less than some MiB.
void advise_large_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace widelimit::numerics
