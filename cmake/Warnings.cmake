# The warnings that all of Tenon's own code is compiled with.
function(tenon_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual
                                           -Wcast-qual -Wextra-semi -Wimplicit-fallthrough -Wswitch-enum)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The last four misfire on std::string and std::optional once inlined (gcc bugs 105329, 105562, 105651).
    target_compile_options(${target} PRIVATE -Wduplicated-cond -Wlogical-op -Wno-restrict -Wno-stringop-overflow
                                             -Wno-maybe-uninitialized -Wno-array-bounds)
    if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
      target_compile_options(${target} PRIVATE -Wno-dangling-reference)  # misfires on functions given a temporary
    endif()
  elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # libstdc++ marks the buffer that its own std::stable_sort takes as deprecated; clang lays that at the caller's door.
    target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
  endif()
  if(TENON_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
