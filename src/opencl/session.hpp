#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "opencl/call.hpp"
#include "opencl/devices.hpp"

namespace widelimit::opencl {

/// An object of OpenCL that is released at the end, unless the process was forked from its owner.
template <typename Handle>
struct Release {
  cl_int (*release)(Handle);
  void operator()(Handle handle) const {
    if (may_release()) release(handle);
  }
};
template <typename Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, Release<Handle>>;

/// Memory of a device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(cl_context context, std::size_t bytes);

  [[nodiscard]] cl_mem get() const { return memory_.get(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  Owned<cl_mem> memory_{nullptr, {nullptr}};
  std::size_t bytes_ = 0;
};

/// While it lives, buffers of more bytes are refused, as on a card that other programs fill: for tests.
class BufferLimit {
 public:
  explicit BufferLimit(std::uint64_t most);
  ~BufferLimit();
  BufferLimit(const BufferLimit&) = delete;
  BufferLimit& operator=(const BufferLimit&) = delete;
};

/// A kernel of a built program, with arguments of its own.
class Kernel {
 public:
  Kernel(cl_program program, const std::string& name);

  void set(cl_uint number, const Buffer& buffer);
  template <typename Number>
  requires std::is_arithmetic_v<Number>
  void set(cl_uint number, Number value) {
    check(functions()->set_argument(kernel_.get(), number, sizeof value, &value), "setting an argument");
  }
  [[nodiscard]] cl_kernel get() const { return kernel_.get(); }

 private:
  Owned<cl_kernel> kernel_{nullptr, {nullptr}};
};

/// One of several queues of work on a device; each thread has its own. Calls return once their work is done, except
/// run(), whose work is done in order.
class Queue {
 public:
  Queue(cl_context context, cl_device_id device);

  void write(const Buffer& to, const void* from, std::size_t bytes);
  void read(const Buffer& from, void* to, std::size_t bytes);
  /// Runs `groups` work-groups of `size` items.
  void run(const Kernel& kernel, std::size_t groups, std::size_t size);
  void finish();

 private:
  Owned<cl_command_queue> queue_{nullptr, {nullptr}};
};

/// Memory of the host to which a device copies fastest: the driver keeps it where it is.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(cl_context context, cl_device_id device, std::size_t bytes);
  HostMemory(HostMemory&& other) noexcept { swap(other); }
  HostMemory& operator=(HostMemory&& other) noexcept {
    swap(other);
    return *this;
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory();

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void swap(HostMemory& other) noexcept {
    std::swap(queue_, other.queue_);
    std::swap(memory_, other.memory_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }

  Owned<cl_command_queue> queue_{nullptr, {nullptr}};
  Owned<cl_mem> memory_{nullptr, {nullptr}};
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A device in use by this process, with the programs that were built for it.
class Session {
 public:
  explicit Session(Device device);

  [[nodiscard]] const Device& device() const { return device_; }
  [[nodiscard]] Buffer buffer(std::size_t bytes) const { return {context_.get(), bytes}; }
  /// Calls body(); errors of the device name it, and the layer of this path.
  template <typename Body>
  void naming(const std::string& path, const Body& body) const {
    try {
      body();
    } catch (const DeviceError& error) {
      rethrow(path, error);
    }
  }
  /// Takes a new buffer if this one is too small.
  void reserve(Buffer& to, std::size_t bytes) const {
    if (to.bytes() < bytes) to = buffer(bytes);
  }
  /// Takes a new buffer of bytes_of(n) if this one is too small, for the largest n of count, count / 2, ..., 1 that
  /// other programs leave room for. Returns n. DeviceError where there is no room for one.
  template <typename BytesOf>
  std::int64_t reserve_most(Buffer& to, std::int64_t count, Queue& queue, const BytesOf& bytes_of) const {
    for (;; count /= 2) {
      if (to.bytes() >= bytes_of(count)) return count;
      try {
        to = {};
        to = taken(bytes_of(count), queue);
        return count;
      } catch (const DeviceError&) {
        if (count <= 1) throw;
      }
    }
  }
  /// What the driver says to be free now; nothing where it does not.
  [[nodiscard]] std::optional<std::uint64_t> free_memory() const;
  /// The largest of wanted, wanted / 2, ... bytes that two buffers can have at a time now: they are taken and given
  /// back. DeviceError where it is less than `least`.
  [[nodiscard]] std::size_t room_for_two(std::size_t wanted, std::size_t least) const;
  [[nodiscard]] HostMemory host_memory(std::size_t bytes) const {
    return {context_.get(), device_.id, bytes};
  }
  [[nodiscard]] Queue queue() const { return {context_.get(), device_.id}; }
  /// A kernel of this source, which is built once for each session, unless many others follow.
  [[nodiscard]] Kernel kernel(const std::string& source, const std::string& name);
  /// Builds those of the sources that are not built yet as one program, which takes a fraction of the time. Sources
  /// that a driver refuses together are left to kernel(), whose error is of one of them.
  void build_together(std::span<const std::string> sources);
  /// How many programs were built so far.
  [[nodiscard]] std::size_t programs_built() const { return programs_built_; }

 private:
  /// A buffer that has its memory: some drivers give it when it is first used.
  [[nodiscard]] Buffer taken(std::size_t bytes, Queue& queue) const;
  [[noreturn]] void rethrow(const std::string& path, const DeviceError& error) const;
  /// A source's part of a program.
  struct Part {
    std::shared_ptr<Owned<cl_program>> program;
    std::optional<std::size_t> number;  ///< In a program of several.
  };
  /// The code is that of clBuildProgram().
  [[nodiscard]] std::pair<Owned<cl_program>, cl_int> built(const std::string& source);
  /// Forgets programs of which there are many. Kernels in use keep theirs.
  void keep_few();

  Device device_;
  Owned<cl_context> context_{nullptr, {nullptr}};
  std::mutex building_;
  std::map<std::string, Part> programs_;  ///< [source]
  std::atomic<std::size_t> programs_built_ = 0;
};

}  // namespace widelimit::opencl
