# What the CPU target needs: LLVM 19 (the shared library), oneTBB, SLEEF.
find_package(LLVM 19.1 CONFIG QUIET HINTS /usr/lib/llvm-19)
if(NOT LLVM_FOUND)
  message(FATAL_ERROR "The CPU target needs LLVM 19 (Debian and Ubuntu: llvm-19-dev). Configure with -DTENON_CPU=OFF to "
                      "build without it.")
endif()
find_package(TBB REQUIRED)
find_package(Sleef REQUIRED)

function(tenon_add_cpu_target target)
  target_compile_definitions(${target} PRIVATE TENON_WITH_CPU)
  target_include_directories(${target} SYSTEM PRIVATE ${LLVM_INCLUDE_DIRS})
  separate_arguments(definitions UNIX_COMMAND "${LLVM_DEFINITIONS}")
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_link_libraries(${target} PRIVATE LLVM TBB::tbb Sleef::sleef)
endfunction()
