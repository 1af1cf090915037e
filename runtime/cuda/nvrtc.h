// NVRTC, NVIDIA's run-time compiler: CUDA C++ text in, machine code (cubin) for one architecture out.
// Relies on a libnvrtc that is found and opened at run time; needs no GPU, no driver and no toolkit headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tenon::runtime::cuda {

/// Where to look for NVRTC, in the order of the fields. All may be empty; src/driver/options.cpp fills them from the
/// environment.
struct NvrtcSearch {
  std::string path;                          ///< TENON_NVRTC_PATH, a file or a folder. When set, nothing else is tried
  std::vector<std::string> extra_folders;    ///< folders that may hold libnvrtc.so.13 or .12 themselves
  std::vector<std::string> python_prefixes;  ///< VIRTUAL_ENV, ~/.local, /usr …: NVIDIA's wheels below lib/python3*
  std::string conda_prefix;                  ///< CONDA_PREFIX
  std::vector<std::string> toolkit_folders;  ///< CUDA_PATH, CUDA_HOME, /usr/local/cuda
};

/// One place that was looked at, for `tenon doctor`.
struct NvrtcAttempt {
  std::string where;    ///< a path, or a soname left to the loader
  std::string outcome;  ///< "opened", or why not
};

using NvrtcProgram = struct NvrtcProgramObject*;

/// The opened compiler: its identity and its entry points. Plain data; every function may be called from any thread.
struct Nvrtc {
  std::string path;      ///< file that was opened
  std::string build_id;  ///< of that file: the version omits the patch, two builds of 13.0 may generate different code
  int major = 0;
  int minor = 0;
  std::vector<int> architectures;  ///< what it compiles for, ascending: {75, 80, …, 121}

  int (*create_program)(NvrtcProgram*, const char* source, const char* name, int header_count,
                        const char* const* headers, const char* const* include_names) = nullptr;
  int (*destroy_program)(NvrtcProgram*) = nullptr;
  int (*compile_program)(NvrtcProgram, int option_count, const char* const* options) = nullptr;
  int (*get_cubin_size)(NvrtcProgram, std::size_t*) = nullptr;
  int (*get_cubin)(NvrtcProgram, char*) = nullptr;
  int (*get_ptx_size)(NvrtcProgram, std::size_t*) = nullptr;
  int (*get_ptx)(NvrtcProgram, char*) = nullptr;
  int (*get_program_log_size)(NvrtcProgram, std::size_t*) = nullptr;
  int (*get_program_log)(NvrtcProgram, char*) = nullptr;
  const char* (*get_error_string)(int) = nullptr;

  /// "nvrtc 13.0 build 65be0d…": the compiler's part of a cache key.
  std::string identity() const;
};

/// Opens the first NVRTC (12.0 or later) that works: `path`; one that the process has open; wheels; conda; the loader's
/// (libnvrtc.so.13, then .12); toolkits. Its builtins library is opened by path beside it, since NVRTC itself asks the
/// loader for that one by name. Never closed again. From then on glibc keeps up to 62 MB of freed memory for the
/// process, which saves a sixth of a small kernel's compile time. Throws Error(no_device) that lists what was tried.
/// `attempts`, where given, receives every place looked at, also on success.
std::shared_ptr<const Nvrtc> open_nvrtc(const NvrtcSearch& search, std::vector<NvrtcAttempt>* attempts = nullptr);

/// How a kernel is compiled. Everything here is in the flags, and so in the cache key.
struct CompileOptions {
  int standard = 17;               ///< C++ standard: 17 or 20
  bool fmad = true;                ///< contract a*b+c into one fma; off in strict numerics
  bool line_info = false;          ///< map machine code to source lines, for profilers
  bool want_ptx = false;           ///< return the PTX too; not part of the flags
  std::vector<std::string> extra;  ///< further NVRTC flags, appended as they are
};

/// The exact flags for `arch` ("sm_90a"), in order: no fast-math, denormals kept, division and square root rounded.
std::vector<std::string> compile_flags(const Nvrtc& nvrtc, const std::string& arch, const CompileOptions& options);

/// What one kernel takes, as ptxas reports it.
struct ResourceUse {
  int registers = 0;  ///< per thread
  int barriers = 0;
  std::int64_t shared_bytes = 0;       ///< static shared memory of a block
  std::int64_t stack_bytes = 0;        ///< local memory of a thread
  std::int64_t spill_store_bytes = 0;  ///< registers that did not fit, written to local memory
  std::int64_t spill_load_bytes = 0;
  bool operator==(const ResourceUse&) const = default;
};

struct CompiledProgram {
  std::string entry;
  std::string arch;
  std::vector<std::byte> cubin;
  std::string ptx;  ///< empty unless asked for
  std::string log;
  double milliseconds = 0;
  ResourceUse resources;
  std::vector<std::string> warnings;  ///< see warnings_in
};

/// Compiles `source` for `arch`. `entry` is an extern "C" kernel in it, whose resources are reported. Throws
/// Error(compile) with NVRTC's log and the lines around each error, Error(unsupported) for an architecture that this
/// NVRTC does not know, Error(out_of_memory).
CompiledProgram compile(const Nvrtc& nvrtc, const std::string& source, const std::string& entry,
                        const std::string& arch, const CompileOptions& options = {});

/// Resources of kernel `entry` in a log made with --ptxas-options=-v; zeros when the log does not name it.
ResourceUse resources_in(const std::string& log, const std::string& entry);

/// The lines of a log that must not go unseen: every warning of the front end or ptxas, and ptxas's remarks C75xx
/// (a setmaxnreg ignored, wgmma serialised), which it calls "info".
std::vector<std::string> warnings_in(const std::string& log);

/// The architecture to compile for on a device of compute capability `major`.`minor`: the exact one where NVRTC knows
/// it, with the 'a' suffix for 9.0, 10.x and 11.x (wgmma, tcgen05), else the newest lower one of the same major
/// version, whose code that device also runs. Throws Error(unsupported) when there is none.
std::string arch_for(int major, int minor, const Nvrtc& nvrtc);

}  // namespace tenon::runtime::cuda
