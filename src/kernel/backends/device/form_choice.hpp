#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernel/backends/device/device_form.hpp"
#include "kernel/backends/device/form_cache.hpp"
#include "opencl/devices.hpp"

namespace widelimit {

/// What form_variable holds instead of a form: the usual one; one that is remembered, or else measured; one that is
/// measured anew. Without it GPUs and accelerators have `tuned` for runs of some seconds, and processors `usual`: on
/// these, forms make little difference, and compiling them takes longer than most runs.
constexpr const char *usual_form = "usual", *tuned_form = "tuned", *measured_form = "measured";

/// How the runs of forms are timed. Both throw DeviceError where the device refuses a form.
struct FormTrials {
  /// Compiles a form, and returns about how many seconds a pair takes.
  std::function<double(const DeviceForm&)> try_pair;
  /// The seconds of a pair, to be compared with those of other forms.
  std::function<double(const DeviceForm&)> measure;
};

/// The form of a plan, and where it comes from.
class FormChoice {
 public:
  /// Throws DeviceError for what form_variable must not hold. `lanes`: work-items of the usual form. `pairs`: of the
  /// run.
  FormChoice(const opencl::Device& device, Index lanes, Index pairs);

  /// Whether it is to be settled: until then the form is the usual one.
  [[nodiscard]] bool is_open() const { return is_open_; }
  [[nodiscard]] const DeviceForm& form() const { return form_; }
  [[nodiscard]] const DeviceForm& usual() const { return usual_; }
  /// The form and where it comes from, for people; of an open one, what settle() will do.
  [[nodiscard]] std::string text(const FormKey& key) const;
  /// What was measured, in this order; refused forms take infinitely long.
  [[nodiscard]] const std::vector<FormTime>& times() const { return times_; }
  /// Where the measured form is kept.
  [[nodiscard]] const std::optional<std::filesystem::path>& kept_in() const { return kept_in_; }

  /// There is nothing to choose: it is the usual one.
  void take_usual();
  /// It will be measured, whatever is forced or remembered.
  void measure_anew();
  /// Takes the form that is kept for the key, if the device takes it; measures it otherwise, and keeps it if `keeps`.
  /// An error of a trial leaves the choice open, but forms that the device refuses are left out, except the usual one.
  void settle(const FormKey& key, bool keeps, const FormTrials& trials);

 private:
  enum class Origin { usual, forced, remembered, measured };

  [[nodiscard]] std::vector<DeviceForm> candidates() const { return device_forms(limits_); }
  [[nodiscard]] bool recall(const FormKey& key, const FormTrials& trials);
  void measure(const FormTrials& trials);
  void close(const DeviceForm& form, Origin origin);

  FormLimits limits_;
  DeviceForm usual_, form_;
  Index pairs_;
  Origin origin_ = Origin::usual;
  std::atomic<bool> is_open_ = false;
  bool recalls_ = true;          ///< Whether what is remembered counts.
  bool only_long_runs_ = false;  ///< Whether short ones are left in the usual form.
  std::vector<FormTime> times_;
  std::optional<std::filesystem::path> kept_in_;
};

}  // namespace widelimit
