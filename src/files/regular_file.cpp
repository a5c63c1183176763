#include "widelimit/files/regular_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <system_error>
#include <utility>

#include "files/whole_name.hpp"
#include "widelimit/error.hpp"

namespace widelimit::files {
namespace {

namespace fs = std::filesystem;

/// What fstat() says of something that is no regular file.
constexpr int no_regular_file = -1;

std::atomic<bool> are_pipes_refused = false;

}  // namespace

RegularFile::RegularFile(fs::path path) : RegularFile(std::move(path), Closed{}) { check(open()); }

RegularFile::RegularFile(RegularFile&& other) noexcept
    : path_{std::move(other.path_)}, descriptor_{std::exchange(other.descriptor_, -1)}, size_{other.size_} {}

RegularFile::~RegularFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

std::optional<RegularFile> RegularFile::if_there(const fs::path& path) {
  RegularFile file(path, Closed{});
  const int code = file.open();
  if (code == ENOENT || code == ENOTDIR) return {};
  file.check(code);
  return file;
}

int RegularFile::open() {
  // A pipe would wait for its other end, a terminal take the process over.
  descriptor_ = ::open(whole_name(path_).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  // Sockets cannot be opened at all.
  if (descriptor_ < 0) return errno == ENXIO ? no_regular_file : errno;
  struct stat facts {};
  if (fstat(descriptor_, &facts) != 0) return errno;
  if (!S_ISREG(facts.st_mode)) return no_regular_file;
  size_ = static_cast<std::uint64_t>(facts.st_size);
  return 0;
}

void RegularFile::check(int code) {
  if (code == ENOENT || code == ENOTDIR)
    throw DataError(fmt::format("{}: expected a file, found none", path_.string()));
  if (code == no_regular_file)
    throw DataError(fmt::format("{}: cannot be read: expected a regular file, found a folder, pipe or device",
                                path_.string()));
  if (code != 0)
    throw DataError(fmt::format("{}: cannot be opened for reading: {}", path_.string(),
                                std::generic_category().message(code)));
}

std::size_t RegularFile::read_raw(std::uint64_t offset, void* destination, std::size_t count) const {
  std::size_t done = 0;
  while (done < count) {
    const ssize_t more = pread(descriptor_, static_cast<char*>(destination) + done, count - done,
                               static_cast<off_t>(offset + done));
    if (more < 0 && errno == EINTR) continue;
    if (more < 0) throw std::system_error(errno, std::generic_category());
    if (more == 0) break;
    done += static_cast<std::size_t>(more);
  }
  return done;
}

std::size_t RegularFile::read(std::uint64_t offset, void* destination, std::size_t count) const {
  try {
    return read_raw(offset, destination, count);
  } catch (const std::system_error& error) {
    throw DataError(fmt::format("{}: cannot be read: {}", path_.string(), error.code().message()));
  }
}

std::string read_file(const fs::path& path, std::uint64_t most, std::string_view what) {
  const RegularFile file(path);
  if (file.size() > most)
    throw DataError(
        fmt::format("{}: expected {} of at most {} bytes, found {}", path.string(), what, most, file.size()));
  std::string bytes(file.size(), '\0');
  bytes.resize(file.read(0, bytes.data(), bytes.size()));
  return bytes;
}

void refuse_pipes() { are_pipes_refused = true; }
bool pipes_are_refused() { return are_pipes_refused; }

}  // namespace widelimit::files
