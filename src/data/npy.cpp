#include "widelimit/data/npy.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "data/array_bytes.hpp"
#include "widelimit/error.hpp"
#include "widelimit/files/replacing_file.hpp"

namespace widelimit::data {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view npy_ending = ".npy";

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  std::ranges::transform(ending, ending.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

/// A number of `bytes` bytes, the lowest one first.
std::uint64_t little_endian(std::string_view text, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(text[at + i]);
  return value;
}

std::string read_text_at(const InputFile& file, std::uint64_t offset, std::uint64_t count,
                         std::string_view what) {
  // Asked before memory is taken for it.
  if (offset > file.size() || count > file.size() - offset)
    fail_at(file.path(), offset, fmt::format("{} bytes of {}", count, what),
            fmt::format("{} before the end of the file (the file is truncated or no archive)",
                        offset > file.size() ? 0 : file.size() - offset));
  std::string text(count, '\0');
  file.read(offset, text.data(), text.size(), what);
  return text;
}

/// Where the directory of a zip file is.
struct ZipDirectory {
  std::uint64_t entries = 0, bytes = 0, offset = 0;
};

/// Sizes and offsets beyond 32 bits stand before the end of the file.
std::optional<ZipDirectory> long_zip_directory(const InputFile& file, std::uint64_t end) {
  constexpr std::uint64_t locator_bytes = 20, record_bytes = 56;
  if (end < locator_bytes) return std::nullopt;
  const std::string locator = read_text_at(file, end - locator_bytes, locator_bytes, "a zip file's end");
  if (!locator.starts_with("PK\x06\x07")) return std::nullopt;
  const std::uint64_t place = little_endian(locator, 8, 8);
  const std::string record = read_text_at(file, place, record_bytes, "a zip file's end");
  if (!record.starts_with("PK\x06\x06"))
    fail_at(file.path(), place, "the end record of a zip file", "other bytes");
  return ZipDirectory{little_endian(record, 32, 8), little_endian(record, 40, 8),
                      little_endian(record, 48, 8)};
}

ZipDirectory zip_directory(const InputFile& file) {
  constexpr std::uint64_t end_bytes = 22, longest_comment = 65'535;
  const std::uint64_t looked_at = std::min(file.size(), end_bytes + longest_comment);
  const std::string tail = read_text_at(file, file.size() - looked_at, looked_at, "a zip file's end");
  const std::size_t at = tail.rfind("PK\x05\x06");
  if (at == std::string::npos || at + end_bytes > tail.size())
    fail_at(file.path(), file.size(), "the end record of an .npz file (a zip file)",
            "none (the file is truncated or no archive)");
  if (const auto found = long_zip_directory(file, file.size() - looked_at + at)) return *found;
  return {little_endian(tail, at + 10, 2), little_endian(tail, at + 12, 4), little_endian(tail, at + 16, 4)};
}

/// Numbers of 64 bits in place of those that are all ones.
void read_long_numbers(std::string_view extra, ArchiveEntry& entry) {
  constexpr std::uint64_t elsewhere = 0xffffffff;
  while (extra.size() >= 4) {
    const std::uint64_t kind = little_endian(extra, 0, 2), bytes = little_endian(extra, 2, 2);
    if (bytes > extra.size() - 4) return;
    std::string_view field = extra.substr(4, bytes);
    extra.remove_prefix(4 + bytes);
    if (kind != 1) continue;
    for (std::uint64_t* number : {&entry.size, &entry.packed, &entry.offset}) {
      if (*number != elsewhere || field.size() < 8) continue;
      *number = little_endian(field, 0, 8);
      field.remove_prefix(8);
    }
  }
}

std::vector<ArchiveEntry> zip_entries(const InputFile& file) {
  constexpr std::uint64_t most_bytes = std::uint64_t{16} << 20, header_bytes = 46;
  const ZipDirectory directory = zip_directory(file);
  if (directory.bytes > most_bytes)
    fail_at(file.path(), directory.offset, fmt::format("a directory of at most {} bytes", most_bytes),
            fmt::format("{}", directory.bytes));
  const std::string text = read_text_at(file, directory.offset, directory.bytes, "a zip file's directory");
  std::vector<ArchiveEntry> entries;
  std::size_t at = 0;
  for (std::uint64_t k = 0; k < directory.entries; ++k) {
    const auto cut = [&] {
      fail_at(file.path(), directory.offset + at, "an entry of a zip file's directory", "other bytes");
    };
    if (text.size() - at < header_bytes || std::string_view(text).substr(at, 4) != "PK\x01\x02") cut();
    const std::size_t name = little_endian(text, at + 28, 2), extra = little_endian(text, at + 30, 2),
                      comment = little_endian(text, at + 32, 2);
    if (text.size() - at - header_bytes < name + extra + comment) cut();
    ArchiveEntry entry{.name = text.substr(at + header_bytes, name),
                       .offset = little_endian(text, at + 42, 4)};
    entry.packed = little_endian(text, at + 20, 4);
    entry.size = little_endian(text, at + 24, 4);
    entry.checksum = static_cast<std::uint32_t>(little_endian(text, at + 16, 4));
    entry.encrypted = (little_endian(text, at + 8, 2) & 1) != 0;
    const std::uint64_t method = little_endian(text, at + 10, 2);
    entry.deflated = method == 8;
    entry.known_method = method == 0 || method == 8;
    read_long_numbers(std::string_view(text).substr(at + header_bytes + name, extra), entry);
    at += header_bytes + name + extra + comment;
    if (!entry.name.ends_with(npy_ending)) continue;
    entry.name.resize(entry.name.size() - npy_ending.size());
    entries.push_back(std::move(entry));
  }
  return entries;
}

constexpr std::array<std::pair<std::string_view, NpyType>, 13> tensor_types = {{{"BOOL", NpyType::boolean},
                                                                                {"I8", NpyType::int8},
                                                                                {"I16", NpyType::int16},
                                                                                {"I32", NpyType::int32},
                                                                                {"I64", NpyType::int64},
                                                                                {"U8", NpyType::uint8},
                                                                                {"U16", NpyType::uint16},
                                                                                {"U32", NpyType::uint32},
                                                                                {"U64", NpyType::uint64},
                                                                                {"F16", NpyType::float16},
                                                                                {"BF16", NpyType::bfloat16},
                                                                                {"F32", NpyType::float32},
                                                                                {"F64", NpyType::float64}}};

/// A whole number that is not negative.
std::optional<std::uint64_t> count_in(const nlohmann::json& value) {
  if (!value.is_number_unsigned()) return std::nullopt;
  return value.get<std::uint64_t>();
}

/// An entry of a .safetensors file, whose values begin at `start`.
ArchiveEntry tensor_entry(const InputFile& file, const std::string& name, const nlohmann::json& described,
                          std::uint64_t start) {
  const auto fail = [&](std::string_view expected, const std::string& found) {
    fail_at(file.path(), 8, fmt::format("{} of the array '{}'", expected, name), found);
  };
  if (!described.is_object() || !described.contains("dtype") || !described.contains("shape") ||
      !described.contains("data_offsets"))
    fail("'dtype', 'shape' and 'data_offsets'", described.dump().substr(0, 80));
  const nlohmann::json &dtype = described.at("dtype"), &shape = described.at("shape"),
                       &offsets = described.at("data_offsets");
  const auto* type = std::ranges::find_if(
      tensor_types, [&](const auto& known) { return dtype.is_string() && dtype == known.first; });
  if (type == tensor_types.end())
    fail("the type BOOL, I8 to I64, U8 to U64, F16, BF16, F32 or F64", dtype.dump().substr(0, 40));
  NpyHeader header;
  header.type = type->second;
  double values = 1;
  if (!shape.is_array() || shape.size() > 64)
    fail("a shape of at most 64 extents", shape.dump().substr(0, 80));
  for (const nlohmann::json& extent : shape) {
    const auto count = count_in(extent);
    if (!count) fail("a shape of whole numbers", shape.dump().substr(0, 80));
    header.shape.push_back(*count);
    values *= static_cast<double>(*count);
  }
  const auto begin = offsets.is_array() && offsets.size() == 2 ? count_in(offsets[0]) : std::nullopt,
             end = offsets.is_array() && offsets.size() == 2 ? count_in(offsets[1]) : std::nullopt;
  if (!begin || !end || *begin > *end || *end > file.size() - start)
    fail(fmt::format("'data_offsets' within {} bytes", file.size() - start),
         fmt::format("{} (the file is truncated, or its header is wrong)", offsets.dump().substr(0, 80)));
  const std::uint64_t held = *end - *begin;
  // Products beyond 2^53 are not equal to what any file holds.
  if (values * static_cast<double>(size_of(header.type)) != static_cast<double>(held))
    fail(fmt::format("{} bytes for shape {} of {}", values * static_cast<double>(size_of(header.type)),
                     shape.dump(), dtype.dump()),
         fmt::format("{}", held));
  header.data_offset = start + *begin;
  return {.name = name, .offset = header.data_offset, .packed = held, .size = held, .tensor = header};
}

std::vector<ArchiveEntry> tensor_entries(const InputFile& file) {
  // The format allows 100 MB, which take some twenty times as much memory; files of thousands of arrays need 1 MiB.
  constexpr std::uint64_t longest = std::uint64_t{16} << 20;
  constexpr int deepest = 4;
  const std::uint64_t length = little_endian(read_text_at(file, 0, 8, "a header's length"), 0, 8);
  if (length > longest || length > file.size() - 8)
    fail_at(file.path(), 0, fmt::format("a header of at most {} bytes", std::min(longest, file.size() - 8)),
            fmt::format("{} (the file is truncated, or no .safetensors file)", length));
  const auto document = nlohmann::json::parse(
      read_text_at(file, 8, length, "a header"),
      [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
        if (depth > deepest) fail_at(file.path(), 8, "a JSON object of arrays", "deeper levels");
        return true;
      },
      false);
  if (!document.is_object()) fail_at(file.path(), 8, "a JSON object of arrays", "something else");
  std::vector<ArchiveEntry> entries;
  for (const auto& [name, described] : document.items())
    if (name != "__metadata__") entries.push_back(tensor_entry(file, name, described, 8 + length));
  return entries;
}

/// The entry of a place. DataError where there is none.
ArchiveEntry entry_of(const InputFile& file, const ArrayPlace& place) {
  std::vector<ArchiveEntry> entries = archive_entries(file);
  std::vector<std::string> names;
  for (const ArchiveEntry& entry : entries) names.push_back(entry.name);
  constexpr std::size_t most = 10;
  const std::string shown =
      fmt::format("{}{}",
                  fmt::join(names.begin(),
                            names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())), ", "),
                  names.size() > most ? fmt::format(" and {} others", names.size() - most) : "");
  const std::string file_name = file.path().string();
  if (names.empty()) throw DataError(fmt::format("{}: expected an array or more, found none", file_name));
  if (place.entry.empty() && names.size() > 1)
    throw DataError(
        fmt::format("{}: expected one array, found {}; write {}/NAME", file_name, shown, file_name));
  const auto found = place.entry.empty() ? names.begin() : std::ranges::find(names, place.entry);
  if (found == names.end())
    throw DataError(fmt::format("{}: expected an array '{}', found {}", file_name, place.entry, shown));
  return std::move(entries[static_cast<std::size_t>(found - names.begin())]);
}

}  // namespace

ArrayPlace array_place(const fs::path& path) {
  std::error_code error;
  fs::path rest;
  for (fs::path at = path; !at.empty(); at = at.parent_path()) {
    const fs::file_status status = fs::status(at, error);
    if (fs::is_directory(status)) break;
    if (fs::exists(status)) {
      if (rest.empty()) return {path, "", fs::is_regular_file(status) && is_array_archive(path)};
      std::string entry = rest.generic_string();
      if (entry.ends_with(npy_ending)) entry.resize(entry.size() - npy_ending.size());
      if (!is_array_archive(at)) break;
      return {at, std::move(entry), true};
    }
    rest = rest.empty() ? at.filename() : at.filename() / rest;
    if (at == at.parent_path()) break;
  }
  return {path};
}

std::vector<ArchiveEntry> archive_entries(const InputFile& file) {
  return ending_of(file.path()) == ".safetensors" ? tensor_entries(file) : zip_entries(file);
}

bool is_array_archive(const fs::path& path) {
  return ending_of(path) == ".npz" || ending_of(path) == ".safetensors";
}

bool array_exists(const fs::path& path) {
  const ArrayPlace place = array_place(path);
  if (!place.in_archive) return fs::exists(path);
  const std::vector<ArchiveEntry> entries = archive_entries(InputFile(place.file));
  return std::ranges::any_of(
      entries, [&](const ArchiveEntry& entry) { return place.entry.empty() || entry.name == place.entry; });
}

/// One after another, the bytes of an .npz entry, unpacked.
class ArrayBytes::EntryReader {
 public:
  EntryReader(const InputFile& file, const fs::path& path, ArchiveEntry entry)
      : file_{file}, path_{path}, entry_{std::move(entry)} {
    if (entry_.encrypted || !entry_.known_method)
      throw DataError(
          fmt::format("{}: expected an array that is stored or deflated, as NumPy does, found an {} one",
                      path.string(), entry_.encrypted ? "encrypted" : "otherwise packed"));
    constexpr std::uint64_t header_bytes = 30;
    const std::string header = read_text_at(file, entry_.offset, header_bytes, "a zip file's entry");
    if (!header.starts_with("PK\x03\x04"))
      fail_at(file.path(), entry_.offset, "an entry of a zip file", "other bytes");
    start_ = entry_.offset + header_bytes + little_endian(header, 26, 2) + little_endian(header, 28, 2);
    if (start_ > file.size() || entry_.packed > file.size() - start_)
      fail_at(file.path(), entry_.offset, fmt::format("{} bytes of '{}'", entry_.packed, entry_.name),
              "fewer before the end of the file (the file is truncated)");
    if (!entry_.deflated && entry_.packed != entry_.size)
      fail_at(file.path(), entry_.offset, fmt::format("{} bytes of '{}'", entry_.size, entry_.name),
              fmt::format("{}", entry_.packed));
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw Error("npz: zlib could not be initialised");
    restart();
  }
  EntryReader(const EntryReader&) = delete;
  EntryReader& operator=(const EntryReader&) = delete;
  ~EntryReader() { inflateEnd(&stream_); }

  [[nodiscard]] std::uint64_t size() const { return entry_.size; }

  void read(std::uint64_t offset, void* destination, std::size_t count, std::string_view what) {
    if (offset > size() || count > size() - offset)
      fail_at(path_, offset, fmt::format("{} bytes of {}", count, what),
              fmt::format("{} before the end of the array's file", offset > size() ? 0 : size() - offset));
    if (offset < at_) restart();
    std::array<std::uint8_t, 4096> passed{};
    while (at_ < offset) next(passed.data(), std::min<std::uint64_t>(passed.size(), offset - at_));
    auto* to = static_cast<std::uint8_t*>(destination);
    // zlib counts in 32 bits.
    constexpr std::size_t most = std::size_t{1} << 30;
    for (std::size_t done = 0; done < count;) {
      const std::size_t some = std::min(most, count - done);
      next(to + done, some);
      done += some;
    }
    if (at_ == size() && checksum_ != entry_.checksum)
      throw DataError(fmt::format("{}: the checksum is wrong: the file is damaged", path_.string()));
  }

 private:
  void restart() {
    at_ = packed_at_ = 0;
    checksum_ = static_cast<std::uint32_t>(crc32(0, nullptr, 0));
    inflateReset(&stream_);
    stream_.avail_in = 0;
  }
  void next(std::uint8_t* to, std::size_t count) {
    if (entry_.deflated)
      inflate_next(to, count);
    else
      file_.read(start_ + at_, to, count, "an array");
    checksum_ = static_cast<std::uint32_t>(crc32(checksum_, to, static_cast<uInt>(count)));
    at_ += count;
  }
  void inflate_next(std::uint8_t* to, std::size_t count) {
    stream_.next_out = to;
    stream_.avail_out = static_cast<uInt>(count);
    while (stream_.avail_out > 0) {
      if (stream_.avail_in == 0) fill();
      const int status = inflate(&stream_, Z_NO_FLUSH);
      const bool ended = status == Z_STREAM_END && stream_.avail_out > 0;
      if (ended || (status != Z_OK && status != Z_STREAM_END))
        fail_at(file_.path(), start_ + packed_at_ - stream_.avail_in,
                fmt::format("{} bytes of the array '{}', deflated", size(), entry_.name),
                ended ? "fewer" : "damaged data");
    }
  }
  void fill() {
    constexpr std::uint64_t block_bytes = std::uint64_t{1} << 18;
    const std::uint64_t left = entry_.packed - packed_at_;
    if (left == 0)
      fail_at(file_.path(), start_ + packed_at_, fmt::format("more of the array '{}'", entry_.name),
              "its end (it is cut short)");
    block_.resize(std::min(block_bytes, left));
    file_.read(start_ + packed_at_, block_.data(), block_.size(), "an array");
    packed_at_ += block_.size();
    stream_.next_in = block_.data();
    stream_.avail_in = static_cast<uInt>(block_.size());
  }

  const InputFile& file_;
  const fs::path& path_;
  ArchiveEntry entry_;
  std::uint64_t start_ = 0, at_ = 0, packed_at_ = 0;
  std::uint32_t checksum_ = 0;
  z_stream stream_{};
  std::vector<std::uint8_t> block_;
};

ArrayBytes::ArrayBytes(const fs::path& path) : path_{path}, file_{array_place(path).file} {
  const ArrayPlace place = array_place(path);
  if (!place.in_archive) return;
  ArchiveEntry entry = entry_of(file_, place);
  path_ = file_.path() / entry.name;
  tensor_ = entry.tensor;
  if (!tensor_) entry_ = std::make_unique<EntryReader>(file_, path_, std::move(entry));
}
ArrayBytes::~ArrayBytes() = default;

std::uint64_t ArrayBytes::size() const { return entry_ ? entry_->size() : file_.size(); }

void ArrayBytes::read(std::uint64_t offset, void* destination, std::size_t count, std::string_view what) {
  if (entry_)
    entry_->read(offset, destination, count, what);
  else
    file_.read(offset, destination, count, what);
}

template <typename T>
NpyType npy_type_of() {
  if constexpr (std::is_same_v<T, float>) return NpyType::float32;
  if constexpr (std::is_same_v<T, double>) return NpyType::float64;
  if constexpr (std::is_same_v<T, std::int8_t>) return NpyType::int8;
  if constexpr (std::is_same_v<T, std::int16_t>) return NpyType::int16;
  if constexpr (std::is_same_v<T, std::int32_t>) return NpyType::int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return NpyType::int64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return NpyType::uint8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return NpyType::uint16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return NpyType::uint32;
  return NpyType::uint64;
}

template <typename T>
void write_npy(const fs::path& path, const T* values, std::span<const std::size_t> shape) {
  const NpyType type = npy_type_of<T>();
  const std::string header = npy_header_bytes(type, shape);
  const NpyHeader extents{type, {shape.begin(), shape.end()}, header.size()};
  files::ReplacingFile file(path);
  file.write(header.data(), header.size());
  file.write(values, extents.size() * sizeof(T));
  file.commit();
}

#define WIDELIMIT_INSTANTIATE_NPY(T) \
  template NpyType npy_type_of<T>(); \
  template void write_npy<T>(const fs::path&, const T*, std::span<const std::size_t>);

WIDELIMIT_INSTANTIATE_NPY(float)
WIDELIMIT_INSTANTIATE_NPY(double)
WIDELIMIT_INSTANTIATE_NPY(std::int8_t)
WIDELIMIT_INSTANTIATE_NPY(std::int16_t)
WIDELIMIT_INSTANTIATE_NPY(std::int32_t)
WIDELIMIT_INSTANTIATE_NPY(std::int64_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint8_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint16_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint32_t)
WIDELIMIT_INSTANTIATE_NPY(std::uint64_t)
#undef WIDELIMIT_INSTANTIATE_NPY

}  // namespace widelimit::data
