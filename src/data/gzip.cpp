#include "data/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "data/input_file.hpp"
#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

/// zlib's inflate with the gzip header and checksum switched on (16 + the largest window).
class Inflater {
 public:
  Inflater() {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw Error("gzip: zlib could not be initialised");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  z_stream& operator*() { return stream_; }

 private:
  z_stream stream_{};
};

/// Unpacks the member at `begin` and returns where it ends, or how far it came when is_enough(unpacked).
template <typename IsEnough>
std::size_t unpack_member(const std::filesystem::path& path, std::span<const std::uint8_t> packed,
                          std::size_t begin, std::vector<std::uint8_t>& unpacked, const IsEnough& is_enough) {
  Inflater inflater;
  z_stream& stream = *inflater;
  std::vector<std::uint8_t> block(std::size_t{1} << 18);
  std::size_t at = begin;
  while (true) {
    // zlib counts bytes in 32 bits, so that a large file is passed on in pieces.
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    stream.next_in = const_cast<Bytef*>(packed.data() + at);  // zlib only reads it
    stream.avail_in = static_cast<uInt>(std::min(packed.size() - at, most));
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    at = static_cast<std::size_t>(stream.next_in - packed.data());
    unpacked.insert(unpacked.end(), block.data(), stream.next_out);
    if (status == Z_STREAM_END || is_enough(at)) return at;
    // Each round has a whole block for output, so that inflate() can only be stuck for want of input.
    if (status == Z_BUF_ERROR && at == packed.size()) {
      fail_at(path, at, "more gzip data", "the end of the file (the file is truncated)");
    }
    if (status != Z_OK) {
      fail_at(path, at, "valid gzip data",
              fmt::format("corrupt data ({})", stream.msg == nullptr ? zError(status) : stream.msg));
    }
  }
}

}  // namespace

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

std::vector<std::uint8_t> unpack_gzip(const std::filesystem::path& path, std::span<const std::uint8_t> packed,
                                      std::size_t most) {
  std::vector<std::uint8_t> unpacked;
  const auto require_no_more = [&](std::size_t at) {
    if (unpacked.size() > most)
      fail_at(path, at, fmt::format("at most {} bytes of unpacked data", most), "more");
    return false;
  };
  // The contents of several members one after another belong together.
  for (std::size_t at = 0; at < packed.size();) {
    if (!is_gzip(packed.subspan(at))) {
      fail_at(path, at, "the end of the file or another gzip member",
              fmt::format("{} other bytes (the file is longer than its content)", packed.size() - at));
    }
    at = unpack_member(path, packed, at, unpacked, require_no_more);
    require_no_more(at);
  }
  return unpacked;
}

std::vector<std::uint8_t> unpack_gzip_start(const std::filesystem::path& path,
                                            std::span<const std::uint8_t> packed, std::size_t count) {
  std::vector<std::uint8_t> unpacked;
  const auto is_enough = [&](std::size_t) { return unpacked.size() >= count; };
  for (std::size_t at = 0; at < packed.size() && !is_enough(at) && is_gzip(packed.subspan(at));)
    at = unpack_member(path, packed, at, unpacked, is_enough);
  unpacked.resize(std::min(unpacked.size(), count));
  return unpacked;
}

}  // namespace widelimit::data
