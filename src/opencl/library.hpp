#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>

#include <string>
#include <vector>

/// OpenCL, loaded while the program runs: without a loader (libOpenCL.so.1) everything else works as with one.
namespace widelimit::opencl {

/// The functions of the loader that the project calls.
struct Functions {
  decltype(&clGetPlatformIDs) get_platforms;
  decltype(&clGetPlatformInfo) get_platform_info;
  decltype(&clGetDeviceIDs) get_devices;
  decltype(&clGetDeviceInfo) get_device_info;
  decltype(&clCreateContext) create_context;
  decltype(&clReleaseContext) release_context;
  decltype(&clCreateCommandQueue) create_queue;
  decltype(&clReleaseCommandQueue) release_queue;
  decltype(&clCreateBuffer) create_buffer;
  decltype(&clReleaseMemObject) release_buffer;
  decltype(&clCreateProgramWithSource) create_program;
  decltype(&clBuildProgram) build_program;
  decltype(&clGetProgramBuildInfo) get_build_info;
  decltype(&clReleaseProgram) release_program;
  decltype(&clCreateKernel) create_kernel;
  decltype(&clReleaseKernel) release_kernel;
  decltype(&clSetKernelArg) set_argument;
  decltype(&clGetKernelWorkGroupInfo) get_group_info;
  decltype(&clEnqueueNDRangeKernel) enqueue_kernel;
  decltype(&clEnqueueWriteBuffer) enqueue_write;
  decltype(&clEnqueueReadBuffer) enqueue_read;
  decltype(&clEnqueueMapBuffer) enqueue_map;
  decltype(&clEnqueueUnmapMemObject) enqueue_unmap;
  decltype(&clFinish) finish;
};

/// Null if there is no loader; problem() then says why. Loaded at the first call. Throws DeviceError in a process
/// that was forked from one that had opened drivers: their threads are not there, and calls would wait for them for
/// ever.
const Functions* functions();

/// Whether this process may call what it has opened: false in one that was forked, where objects of the other process
/// cannot be released.
bool may_release();

/// What the loader, or the system, lacks; empty if nothing is known to be missing.
std::string problem();

/// The platforms of the loader, and those of drivers whose registration (an .icd file) is missing, as in containers.
/// Each is there once, however often it is registered.
const std::vector<cl_platform_id>& platforms();

}  // namespace widelimit::opencl
