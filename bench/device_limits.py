#!/usr/bin/env python3
"""What a device can do at most, by kernels of OpenCL: operations in fused multiply-adds on registers, and bytes of
a[i] += factor b[i]; and the share of the former that the times of bench/devices.py reach.

    python bench/device_limits.py --device gpu --rows limits.csv [--times times.csv --shares shares.csv] [--bytes 1073741824]

Operations of a workload are counted as in bench/scaling.cpp (`operations` of bench/devices.py).
"""
import argparse
import csv
import ctypes
import glob
import os
import pathlib
import sys
import time

import widelimit

from card_rows import Rows, rows_of
from devices import ROWS

SOURCE = """
#ifdef IN_DOUBLE
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double real;
typedef double8 reals;
#else
typedef float real;
typedef float8 reals;
#endif
__kernel void multiply_add(__global real* out, real factor, int repeats) {
  reals a = get_global_id(0), b = a + 1, c = a + 2, d = a + 3;
  const reals f = factor;
  for (int i = 0; i < repeats; ++i) {
    a = a * f + f; b = b * f + f; c = c * f + f; d = d * f + f;  // which compilers of OpenCL contract
  }
  const reals sum = a + b + c + d;
  out[get_global_id(0)] = sum.s0 + sum.s1 + sum.s2 + sum.s3 + sum.s4 + sum.s5 + sum.s6 + sum.s7;
}
__kernel void add(__global float4* a, __global const float4* b, float factor) {
  const size_t i = get_global_id(0);
  a[i] += factor * b[i];
}
"""
CHAINS = 32  # of an item: eight numbers in each of four vectors
NAME, PLATFORM_NAME, UNITS, DRIVER, ALL = 0x102B, 0x0902, 0x1002, 0x102D, 0xFFFFFFFF


class OpenCL:
    """A queue on the device that the library means by a choice."""

    def __init__(self, choice):
        self.calls = self.loader()
        self.device = self.find(widelimit._core.device_in_full(choice))
        self.context = self.made("clCreateContext", None, 1, ctypes.byref(self.device), None, None)
        self.queue = self.made("clCreateCommandQueue", self.context, self.device, ctypes.c_ulong(0))

    @staticmethod
    def loader():
        """The loader of OpenCL: the system's, or the one that a wheel brings."""
        if not glob.glob("/etc/OpenCL/vendors/*nvidia*"):  # containers often lack the file that names NVIDIA's driver
            os.environ.setdefault("OCL_ICD_FILENAMES", "libnvidia-opencl.so.1")
        package = pathlib.Path(widelimit.__file__).parent
        for name in ("libOpenCL.so.1", *glob.glob(f"{package}*libs/libOpenCL*"), *glob.glob(f"{package}/**/libOpenCL*", recursive=True)):
            try:
                return ctypes.CDLL(name)
            except OSError:
                continue
        sys.exit("device_limits: libOpenCL.so.1 is missing: install ocl-icd-libopencl1")

    def call(self, name, *arguments):
        if code := getattr(self.calls, name)(*arguments):
            raise RuntimeError(f"{name} failed with code {code}")

    def made(self, name, *arguments):
        function, code = getattr(self.calls, name), ctypes.c_int()
        function.restype = ctypes.c_void_p
        made = function(*arguments, ctypes.byref(code))
        if code.value:
            raise RuntimeError(f"{name} failed with code {code.value}")
        return ctypes.c_void_p(made)

    def found(self, name, *of):
        """Handles that clGetPlatformIDs or clGetDeviceIDs lists; none where it has none."""
        count = ctypes.c_uint()
        if getattr(self.calls, name)(*of, 0, None, ctypes.byref(count)):
            return []
        handles = (ctypes.c_void_p * count.value)()
        self.call(name, *of, count, handles, None)
        return [ctypes.c_void_p(handle) for handle in handles]

    def text(self, name, of, key):
        size = ctypes.c_size_t()
        self.call(name, of, key, ctypes.c_size_t(0), None, ctypes.byref(size))
        value = ctypes.create_string_buffer(size.value)
        self.call(name, of, key, size, value, None)
        return value.value.decode().strip()

    def find(self, full):
        for platform in self.found("clGetPlatformIDs"):
            for device in self.found("clGetDeviceIDs", platform, ctypes.c_ulong(ALL)):
                names = (self.text("clGetDeviceInfo", device, NAME), self.text("clGetPlatformInfo", platform, PLATFORM_NAME),
                         f"driver {self.text('clGetDeviceInfo', device, DRIVER)}")
                if ", ".join(names) == full:
                    return device
        sys.exit(f"device_limits: the loader of OpenCL does not list {full or 'the CPU: name a device of OpenCL'}")

    def units(self):
        value = ctypes.c_uint()
        self.call("clGetDeviceInfo", self.device, UNITS, ctypes.c_size_t(4), ctypes.byref(value), None)
        return value.value

    def program(self, options=b""):
        source = ctypes.c_char_p(SOURCE.encode())
        program = self.made("clCreateProgramWithSource", self.context, 1, ctypes.byref(source), None)
        self.call("clBuildProgram", program, 1, ctypes.byref(self.device), options, None, None)
        return program

    def buffer(self, bytes_of):
        buffer, zero = self.made("clCreateBuffer", self.context, ctypes.c_ulong(1), ctypes.c_size_t(bytes_of), None), ctypes.c_int(0)
        self.call("clEnqueueFillBuffer", self.queue, buffer, ctypes.byref(zero), ctypes.c_size_t(4), ctypes.c_size_t(0),
                  ctypes.c_size_t(bytes_of), 0, None, None)
        return buffer

    def seconds(self, program, name, items, *arguments):
        """The best of five runs behind a first one."""
        kernel = self.made("clCreateKernel", program, name.encode())
        for place, argument in enumerate(arguments):
            self.call("clSetKernelArg", kernel, place, ctypes.c_size_t(ctypes.sizeof(argument)), ctypes.byref(argument))
        best, count = float("inf"), ctypes.c_size_t(items)
        for _ in range(6):
            self.call("clFinish", self.queue)
            start = time.perf_counter()
            self.call("clEnqueueNDRangeKernel", self.queue, kernel, 1, None, ctypes.byref(count), None, 0, None, None)
            self.call("clFinish", self.queue)
            best = min(best, time.perf_counter() - start)
        return best


def peak(opencl, precision):
    """Operations a nanosecond."""
    program = opencl.program(b"-DIN_DOUBLE" if precision == "double" else b"")
    factor = (ctypes.c_double if precision == "double" else ctypes.c_float)(0.5)
    items, repeats = opencl.units() * 2048, 64
    out = opencl.buffer(items * ctypes.sizeof(factor))
    while True:
        seconds = opencl.seconds(program, "multiply_add", items, out, factor, ctypes.c_int(repeats))
        if seconds > 0.02 or repeats > 1 << 24:
            return 2e-9 * CHAINS * items * repeats / seconds
        repeats *= 4


def bandwidth(opencl, bytes_of):
    """Bytes a nanosecond, read and written, of two arrays of `bytes_of` together."""
    half = bytes_of // 32 * 16
    seconds = opencl.seconds(opencl.program(), "add", half // 16, opencl.buffer(half), opencl.buffer(half), ctypes.c_float(0.5))
    return 3e-9 * half / seconds


def measure_limits(arguments):
    rows = Rows(arguments.rows, ("limit",), ("value", "unit"))
    opencl = OpenCL(arguments.device)
    for name, unit, measure in (("float", "operations a nanosecond", lambda: peak(opencl, "float")),
                                ("double", "operations a nanosecond", lambda: peak(opencl, "double")),
                                ("memory", "bytes a nanosecond", lambda: bandwidth(opencl, arguments.bytes))):
        if rows.lacks(name):
            try:
                rows.append(name, measure(), unit)
            except RuntimeError as problem:
                rows.append(name, problem=str(problem))
    return rows.failed


def write_shares(times, limits, path):
    """Written anew: it is made of the two other files."""
    most = {row["limit"]: float(row["value"]) for row in rows_of(limits) if not row["problem"]}
    with path.open("w", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(("network", "precision", "package", "form", "milliseconds_a_pair", "operations_a_pair", "share_of_peak"))
        for row in rows_of(times):
            if not row["problem"] and row["precision"] in most:
                count = ROWS[row["network"]].operations(int(row["pixels"]))
                share = count / (1e6 * float(row["milliseconds_a_pair"])) / most[row["precision"]]
                out.writerow((*(row[key] for key in ("network", "precision", "package", "form", "milliseconds_a_pair")), count, f"{share:.4g}"))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", required=True)
    parser.add_argument("--rows", type=pathlib.Path, required=True)
    parser.add_argument("--times", type=pathlib.Path, help="rows of bench/devices.py")
    parser.add_argument("--shares", type=pathlib.Path)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    arguments = parser.parse_args(argv)
    if (arguments.times is None) != (arguments.shares is None):
        parser.error("--times and --shares belong together")
    failed = measure_limits(arguments)
    if arguments.times and arguments.times.exists():
        write_shares(arguments.times, arguments.rows, arguments.shares)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
