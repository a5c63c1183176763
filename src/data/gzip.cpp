#include "data/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "widelimit/error.hpp"

namespace widelimit::data {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;

}  // namespace

bool is_gzip(std::span<const std::uint8_t> bytes) {
  return bytes.size() >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b;
}

/// zlib's inflate with the gzip header and checksum switched on (16 + the largest window).
class GzipReader::Inflater {
 public:
  explicit Inflater(const InputFile& file) : file_{file} {
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) throw Error("gzip: zlib could not be initialised");
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  [[nodiscard]] std::uint64_t offset() const { return block_end_ - stream_.avail_in; }

  std::size_t read(std::span<std::uint8_t> destination) {
    // zlib counts bytes in 32 bits.
    const auto count =
        static_cast<uInt>(std::min<std::size_t>(destination.size(), std::numeric_limits<uInt>::max()));
    stream_.next_out = destination.data();
    stream_.avail_out = count;
    while (stream_.avail_out > 0 && (in_member_ || begin_member())) inflate_some();
    return count - stream_.avail_out;
  }

 private:
  /// False at the end of the file.
  bool begin_member() {
    const std::uint64_t at = offset();
    if (at == file_.size()) return false;
    std::uint8_t start[2] = {};
    file_.read(at, start, std::min<std::uint64_t>(2, file_.size() - at), "a gzip member");
    if (!is_gzip(start)) {
      fail_at(file_.path(), at, "the end of the file or another gzip member",
              fmt::format("{} other bytes (the file is longer than its content)", file_.size() - at));
    }
    inflateReset(&stream_);
    in_member_ = true;
    return true;
  }

  void inflate_some() {
    if (stream_.avail_in == 0) fill();
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      in_member_ = false;
    } else if (status != Z_OK && !(status == Z_BUF_ERROR && stream_.avail_in == 0)) {
      fail_at(file_.path(), offset(), "valid gzip data",
              fmt::format("corrupt data ({})", stream_.msg == nullptr ? zError(status) : stream_.msg));
    }
  }

  void fill() {
    const std::uint64_t left = file_.size() - block_end_;
    if (left == 0) {
      fail_at(file_.path(), block_end_, "more gzip data", "the end of the file (the file is truncated)");
    }
    block_.resize(std::min<std::uint64_t>(block_bytes, left));
    file_.read(block_end_, block_.data(), block_.size(), "gzip data");
    block_end_ += block_.size();
    stream_.next_in = block_.data();
    stream_.avail_in = static_cast<uInt>(block_.size());
  }

  const InputFile& file_;
  z_stream stream_{};
  std::vector<std::uint8_t> block_;
  std::uint64_t block_end_ = 0;  ///< Where in the file the block ends.
  bool in_member_ = false;
};

GzipReader::GzipReader(const InputFile& file) : inflater_{std::make_unique<Inflater>(file)} {}
GzipReader::~GzipReader() = default;

std::size_t GzipReader::read(std::span<std::uint8_t> destination) { return inflater_->read(destination); }
std::uint64_t GzipReader::packed_offset() const { return inflater_->offset(); }

std::vector<std::uint8_t> unpack_gzip(const InputFile& file, std::size_t most) {
  GzipReader reader(file);
  std::vector<std::uint8_t> unpacked;
  for (std::size_t size = 0;;) {
    unpacked.resize(size + block_bytes);
    const std::size_t count = reader.read(std::span(unpacked).subspan(size));
    size += count;
    if (size > most)
      fail_at(file.path(), reader.packed_offset(), fmt::format("at most {} bytes of unpacked data", most),
              "more");
    if (count > 0) continue;
    unpacked.resize(size);
    return unpacked;
  }
}

std::vector<std::uint8_t> unpack_gzip_start(const InputFile& file, std::size_t count) {
  std::vector<std::uint8_t> unpacked(count);
  unpacked.resize(GzipReader(file).read(unpacked));
  return unpacked;
}

}  // namespace widelimit::data
