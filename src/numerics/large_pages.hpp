#pragma once

#include <cstddef>

namespace widelimit::numerics {

inline constexpr std::size_t large_page = std::size_t{2} << 20;

/// True for memory of so many bytes that large pages are worth asking for.
constexpr bool serves_large_pages(std::size_t bytes) { return bytes >= 4 * large_page; }

/// Asks the system to back memory that is about to be written with large pages (2 MiB), where it has some to give: the
/// first write to each of its small pages would interrupt the computation, and a matrix whose columns are written needs
/// one for every row. What is in the memory stays as it is. Does nothing for memory that
/// serves_large_pages() refuses.
void advise_large_pages(void* begin, std::size_t bytes) noexcept;

}  // namespace widelimit::numerics
