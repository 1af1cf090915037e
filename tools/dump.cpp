// tenon dump: any level of the compiler, as text.
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "codegen/emit/cuda/text/parts.h"
#include "codegen/kernel/kernel.h"
#include "ir/fusion/dot.h"
#include "ir/passes/passes.h"
#include "ir/text/text.h"
#include "src/api/write_file.h"
#include "src/driver/pipeline.h"
#include "src/driver/tune.h"
#include "tools/command.h"

namespace tenon::tools {
namespace {

struct DumpArguments {
  CompileArguments compile;
  std::string emit = "plan";
  std::string after;  ///< graph: stop after this pass
  int kernel = -1;
  bool no_prelude = false;
  std::string output;
};

std::string dump_graph(const DumpArguments& arguments) {
  ir::Graph graph = ir::read_file(arguments.compile.file);
  if (arguments.after.empty()) return ir::print(graph);
  for (const ir::Pass& pass : ir::pass_table()) {
    graph = pass.run(graph);
    if (pass.name == arguments.after) return ir::print(graph);
  }
  std::string names;
  for (const ir::Pass& pass : ir::pass_table()) names += fmt::format("{}{}", names.empty() ? "" : ", ", pass.name);
  throw Error(ErrorKind::argument, fmt::format("--after {}: no such pass", arguments.after), {}, "use one of " + names);
}

// A file without a name, which other programs open by its path and which ends with this process.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(::memfd_create("tenon", MFD_CLOEXEC)) {
    if (descriptor_ < 0)
      throw Error(ErrorKind::io, fmt::format("no file in memory: {}", std::strerror(errno)), {},
                  "close other programs");
    write_file(path(), content);
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor_); }

 private:
  int descriptor_;
};

// sass: the cubin through nvdisasm or cuobjdump, whichever is installed.
std::string disassemble(const std::string& cubin) {
  const MemoryFile input(cubin);
  std::string text;
  for (const char* tool :
       {"nvdisasm", "/usr/local/cuda/bin/nvdisasm", "cuobjdump -sass", "/usr/local/cuda/bin/cuobjdump -sass"}) {
    FILE* pipe = ::popen(fmt::format("{} '{}' 2>/dev/null", tool, input.path()).c_str(), "r");
    if (pipe == nullptr) continue;
    char buffer[4096];
    for (std::size_t count; (count = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, count);
    if (::pclose(pipe) == 0 && !text.empty()) break;
    text.clear();
  }
  if (text.empty())
    throw Error(ErrorKind::no_device, "neither nvdisasm nor cuobjdump is installed", {},
                "install NVIDIA's CUDA toolkit, or use --emit ptx");
  return text;
}

// The launches that the wanted kernels are in, or all.
std::vector<codegen::Launch> wanted_launches(const DumpArguments& arguments, const ir::Plan& plan,
                                             const codegen::Specialization& specialization,
                                             const runtime::Backend& backend) {
  const Options options = arguments.compile.options();
  const src::FindSchedule find = src::find_tuned(backend, src::open_tunings(options), options);
  const auto wanted = [&](const std::vector<int>& groups) {
    return arguments.kernel < 0 || std::count(groups.begin(), groups.end(), arguments.kernel) > 0;
  };
  std::vector<codegen::Launch> launches;
  for (const std::vector<int>& set : ir::launched_together(plan)) {
    if (!wanted(set)) continue;
    for (codegen::Launch& launch : src::make_launches(plan, set, specialization, backend.target(), find))
      if (wanted(launch.groups)) launches.push_back(std::move(launch));
  }
  return launches;
}

// The levels that a kernel has of its own.
std::string dump_members(const DumpArguments& arguments, const codegen::Launch& launch) {
  std::string text;
  for (std::size_t i = 0; i < launch.members.size(); ++i) {
    if (arguments.kernel >= 0 && launch.groups[i] != arguments.kernel) continue;
    if (arguments.emit == "schedule") {
      text += codegen::print(launch, i);
    } else {
      text += (text.empty() ? "" : "\n") + codegen::print(launch.members[i]);
    }
  }
  return text;
}

// What was generated for this launch alone: the pieces that every kernel may call stand first, with an empty line
// behind.
std::string without_prelude(const std::string& text) {
  for (std::size_t at = text.find("\n\n"); at != std::string::npos; at = text.find("\n\n", at + 1)) {
    const std::string rest = text.substr(at + 2);
    if (text.compare(0, at + 1, codegen::cuda::prelude_for(rest)) == 0) return rest;
  }
  return text;
}

// The levels below the plan, for one launch.
std::string dump_launch(const DumpArguments& arguments, const codegen::Launch& launch,
                        const runtime::Backend& backend) {
  if (arguments.emit == "schedule" || arguments.emit == "kernel") return dump_members(arguments, launch);
  const codegen::Source source = backend.emit(launch);
  if (arguments.emit == "cuda" && arguments.no_prelude) return without_prelude(source.text);
  if (arguments.emit == "cuda" || arguments.emit == "llvm") return source.text;
  if (arguments.emit == "ptx" || arguments.emit == "asm") return backend.disassemble(source);
  const runtime::Binary binary = backend.build(source);
  const std::string bytes(reinterpret_cast<const char*>(binary.entry->binary.data()), binary.entry->binary.size());
  return arguments.emit == "sass" ? disassemble(bytes) : bytes;
}

bool is_cpu_level(const std::string& emit) { return emit == "llvm" || emit == "asm"; }

bool is_cuda_level(const std::string& emit) {
  return emit == "cuda" || emit == "ptx" || emit == "cubin" || emit == "sass";
}

// Of what device the plan is: a level of one kind of target is planned for that kind.
std::string target_for(const DumpArguments& arguments) {
  const std::string& target = arguments.compile.target;
  if (is_cpu_level(arguments.emit)) return "cpu";
  return is_cuda_level(arguments.emit) && target == "auto" ? "cuda" : target;
}

// cuda, ptx, cubin and sass need no device: without one they are made for sm_90a. llvm and asm are the CPU's.
std::shared_ptr<const runtime::Backend> backend_for(const DumpArguments& arguments, const Options& options) {
  const bool cpu_level = is_cpu_level(arguments.emit), cuda_level = is_cuda_level(arguments.emit);
  const std::string& target = arguments.compile.target;
  if (cpu_level && target != "auto" && target != "cpu")
    throw Error(ErrorKind::argument, fmt::format("--emit {} is of target cpu, not {}", arguments.emit, target), {},
                "use --emit cuda, ptx, cubin or sass");
  if (cuda_level && target == "cpu")
    throw Error(ErrorKind::argument, fmt::format("--emit {} is of a CUDA target", arguments.emit), {},
                "use --target sm_90a, or --emit llvm or asm");
  if (cpu_level) return src::open_backend("cpu", options);
  if (!cuda_level || target != "auto") return src::open_backend(target, options);
  try {
    return src::open_backend("cuda", options);
  } catch (const Error&) {
    return src::open_backend("sm_90a", options);
  }
}

bool is_of_whole_graph(const std::string& emit) {
  return emit == "graph" || emit == "json" || emit == "plan" || emit == "dot";
}

// What is wrong with the options themselves.
void check_arguments(const DumpArguments& arguments) {
  const std::string& emit = arguments.emit;
  if (arguments.kernel >= 0 && is_of_whole_graph(emit))
    throw Error(ErrorKind::argument,
                fmt::format("--kernel {}: --emit {} is of the whole graph", arguments.kernel, emit), {},
                "use it with --emit schedule, kernel, or what is generated for a target");
  if (!arguments.after.empty() && emit != "graph")
    throw Error(ErrorKind::argument, fmt::format("--after {} with --emit {}", arguments.after, emit), {},
                "use it with --emit graph");
  if (arguments.no_prelude && emit != "cuda")
    throw Error(ErrorKind::argument, fmt::format("--no-prelude with --emit {}", emit), {}, "use it with --emit cuda");
  const bool to_stdout = arguments.output.empty() || arguments.output == "-";
  if (emit == "cubin" && to_stdout && isatty(STDOUT_FILENO) != 0)
    throw Error(ErrorKind::argument, "--emit cubin to a terminal", {},
                "write it to a file with -o FILE, or send it to a pipe; --emit sass shows it as text");
}

int dump(const DumpArguments& arguments) {
  check_arguments(arguments);
  const Options options = arguments.compile.options();
  std::string text;
  if (arguments.emit == "graph") {
    text = dump_graph(arguments);
  } else if (arguments.emit == "json") {
    text = ir::print_json(ir::read_file(arguments.compile.file));
  } else {
    const ir::Plan plan = src::plan(ir::read_file(arguments.compile.file), target_for(arguments), options);
    if (arguments.emit == "plan") {
      text = ir::print(plan);
    } else if (arguments.emit == "dot") {
      text = ir::dot(plan);
    } else {
      const int groups = static_cast<int>(plan.groups.size());
      if (arguments.kernel >= groups)
        throw Error(ErrorKind::argument,
                    fmt::format("--kernel {}: the plan has {}", arguments.kernel, counted(groups, "kernel")), {},
                    "count from 0");
      const auto backend = backend_for(arguments, options);
      const Bindings bindings = arguments.compile.bindings();
      const bool all_bound = bindings.size() >= plan.graph.symbols.size();
      const auto specialization = all_bound ? codegen::specialize(plan, bindings) : codegen::unspecialized(plan);
      const bool binary = arguments.emit == "cubin";
      const auto launches = wanted_launches(arguments, plan, specialization, *backend);
      if (binary && launches.size() > 1)
        throw Error(ErrorKind::argument, fmt::format("the plan has {} kernels and a cubin holds one", launches.size()),
                    {}, "choose one with --kernel N");
      for (const codegen::Launch& launch : launches)
        text += dump_launch(arguments, launch, *backend) + (binary ? "" : "\n");
    }
  }
  write_output(arguments.output, text);
  return fine;
}

}  // namespace

void add_dump(CLI::App& app, Action& action) {
  const auto arguments = std::make_shared<DumpArguments>();
  CLI::App* command = app.add_subcommand("dump", "Show a level of the compiler");
  arguments->compile.add_to(*command);
  command
      ->add_option("--emit", arguments->emit,
                   "graph, plan, schedule, kernel, cuda, ptx, cubin, sass, llvm, asm, dot or json")
      ->check(CLI::IsMember(
          {"graph", "plan", "schedule", "kernel", "cuda", "ptx", "cubin", "sass", "llvm", "asm", "dot", "json"}))
      ->capture_default_str();
  command->add_option("--after", arguments->after, "with --emit graph: the graph after this pass");
  command->add_option("--kernel", arguments->kernel, "only this kernel of the plan, from 0")
      ->check(whole_number("--kernel 0"));
  command->add_flag("--no-prelude", arguments->no_prelude,
                    "with --emit cuda: without the pieces that kernels share, which stand before each");
  command->add_option("-o,--output", arguments->output, "file to write (default: stdout)");
  command->callback([arguments, &action] { action = [arguments] { return dump(*arguments); }; });
}

}  // namespace tenon::tools
