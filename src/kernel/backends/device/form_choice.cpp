#include "kernel/backends/device/form_choice.hpp"

#include <fmt/format.h>

#include <limits>

#include "kernel/backends/device/device_notices.hpp"
#include "widelimit/device_error.hpp"

namespace widelimit {
namespace {

/// What the usual form takes of runs that are tuned without being asked for: compiling the others takes some seconds.
constexpr double long_run_seconds = 5;

}  // namespace

FormChoice::FormChoice(const opencl::Device& device, Index lanes, Index pairs)
    // Steps take what fits their planes: forms that do not differ there have the source of one that was timed.
    : limits_{.lanes = lanes,
              .largest_group = device.largest_group,
              .local_memory = device.local_memory,
              .plane_bytes = 0,
              .shares = most_side_by_side,
              .has_rows = true},
      usual_{.items = lanes},
      form_{usual_},
      pairs_{pairs} {
  const std::string forced = forced_form();
  only_long_runs_ = forced.empty();
  recalls_ = forced != measured_form;
  is_open_ = forced == tuned_form || forced == measured_form || (forced.empty() && !device.is_processor);
  if (is_open_ || forced.empty()) return;
  origin_ = Origin::forced;
  if (forced != usual_form) form_ = parse_device_form(forced, usual_, lanes, device.largest_group);
}

std::string FormChoice::text(const FormKey& key) const {
  if (is_open_) {
    if (const auto kept = recalls_ ? kept_form(key, candidates()) : std::nullopt)
      return fmt::format("{} (remembered)", to_string(*kept));
    return fmt::format("the fastest form, which is measured on the first pairs{}",
                       only_long_runs_ ? fmt::format(" of a run of {} s or more; else {} (fixed)",
                                                     long_run_seconds, to_string(usual_))
                                       : "");
  }
  const char* const origin = origin_ == Origin::remembered ? "remembered"
                             : origin_ == Origin::measured ? "measured"
                                                           : "fixed";
  return fmt::format("{} ({}{})", to_string(form_), origin,
                     origin_ == Origin::forced ? fmt::format(" by {}", form_variable) : "");
}

void FormChoice::close(const DeviceForm& form, Origin origin) {
  form_ = form;
  origin_ = origin;
  is_open_ = false;
}

void FormChoice::take_usual() { close(usual_, Origin::usual); }

void FormChoice::measure_anew() {
  form_ = usual_;
  recalls_ = only_long_runs_ = false;
  is_open_ = true;
}

void FormChoice::settle(const FormKey& key, bool keeps, const FormTrials& trials) {
  if (!is_open_ || (recalls_ && recall(key, trials))) return;
  if (only_long_runs_ && trials.try_pair(usual_) * static_cast<double>(pairs_) < long_run_seconds)
    return take_usual();
  measure(trials);
  if (keeps) kept_in_ = keep_form(key, form_);
}

bool FormChoice::recall(const FormKey& key, const FormTrials& trials) {
  const auto kept = kept_form(key, candidates());
  if (!kept) return false;
  try {
    static_cast<void>(trials.try_pair(*kept));
  } catch (const DeviceError& error) {
    // The file is whole, and not of this device: somebody wrote it by hand, or the driver is another of that name.
    notice_of_device(
        fmt::format("device: the remembered form {} is refused, so that it is measured again: {}",
                    to_string(*kept), error.what()));
    return false;
  }
  close(*kept, Origin::remembered);
  return true;
}

void FormChoice::measure(const FormTrials& trials) {
  times_.clear();
  const DeviceForm fastest = search_form(limits_, [&](const DeviceForm& form) {
    double seconds = std::numeric_limits<double>::infinity();
    try {
      seconds = trials.measure(form);
    } catch (const DeviceError&) {
      if (form == usual_) throw;
    }
    times_.push_back({form, seconds});
    return seconds;
  });
  close(fastest, Origin::measured);
}

}  // namespace widelimit
