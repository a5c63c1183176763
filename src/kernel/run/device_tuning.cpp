#include "widelimit/kernel/device_tuning.hpp"

#include <fmt/format.h>

#include <memory>

#include "kernel/backends/device/device_choice.hpp"
#include "kernel/backends/device/device_plan.hpp"
#include "kernel/inputs/typical_inputs.hpp"
#include "kernel/run/gram_run.hpp"
#include "widelimit/error.hpp"

namespace widelimit {
namespace {

/// Their pairs fill a card, or take a processor, which computes a thousandth as fast, a second.
constexpr Index inputs_of_card = 23, inputs_of_processor = 3;

}  // namespace

template <typename Scalar>
DeviceTuning tune_device(const Network& network, const Shape& input, Index channels,
                         const GramOptions& options) {
  if (is_cpu(options.device))
    throw DeviceError("tune: expected a device, got the CPU, on which there is nothing to tune");
  if (channels < 1) throw ArgumentError(fmt::format("tune: channels must be at least 1, got {}", channels));
  const opencl::Device& device = open_device(options.device, "a measurement of forms")->device();
  const Inputs<Scalar> x =
      typical_inputs<Scalar>(device.is_processor ? inputs_of_processor : inputs_of_card, input, channels);
  std::shared_ptr<const GramPlan> used;
  const auto compute = [&](auto& computation, const auto& target, const auto& plan, std::int64_t) {
    plan->device->measure_anew();
    computation.symmetric(x, target);
    used = plan;
  };
  static_cast<void>(run_gram<Scalar>(network, symmetric_task(network, x), options, compute));
  const FormChoice& choice = used->device->choice();
  DeviceTuning tuning{.device = device.name, .form = {}, .forms = {}, .kept_in = {}};
  for (const FormTime& time : choice.times()) tuning.forms.push_back({to_string(time.form), time.seconds});
  if (!tuning.forms.empty()) tuning.form = to_string(choice.form());
  if (choice.kept_in()) tuning.kept_in = choice.kept_in()->string();
  return tuning;
}

template DeviceTuning tune_device<float>(const Network&, const Shape&, Index, const GramOptions&);
template DeviceTuning tune_device<double>(const Network&, const Shape&, Index, const GramOptions&);

}  // namespace widelimit
