# Files made at build time: the public copy of the op table, the prelude as string literals, the build's identity.

# ir/ops.def is a private table that public headers expand: they include it as <tenon/ops.def>.
function(tenon_publish_op_table target)
  file(GLOB table CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/ir/ops.def)
  if(table)
    set(copy ${PROJECT_BINARY_DIR}/include/tenon/ops.def)
    add_custom_command(OUTPUT ${copy} COMMAND ${CMAKE_COMMAND} -E copy ${table} ${copy} DEPENDS ${table} VERBATIM)
    target_sources(${target} PRIVATE ${copy})
  endif()
endfunction()

# codegen/prelude/prelude.h's table of files. Generated again whenever a .cuh changes, comes or goes.
function(tenon_embed_prelude target)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/codegen/prelude/*.cuh)
  set(output ${PROJECT_BINARY_DIR}/generated/prelude_files.cpp)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_prelude.cmake)
  list(JOIN files "|" joined)
  add_custom_command(OUTPUT ${output} COMMAND ${CMAKE_COMMAND} -DFILES=${joined} -DOUTPUT=${output} -P ${script}
                     DEPENDS ${files} ${script} VERBATIM)
  target_sources(${target} PRIVATE ${output})
  # The literals exceed the 64 KiB that the standard asks compilers to accept; gcc and clang have no limit.
  set_source_files_properties(${output} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
endfunction()

# "tenon_build.h" with TENON_VERSION and TENON_COMMIT. Rewritten only when they change; include it in one place.
function(tenon_record_build target)
  set(directory ${PROJECT_BINARY_DIR}/generated)
  add_custom_target(${target}_build_record
                    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
                            -DOUTPUT=${directory}/tenon_build.h -P ${PROJECT_SOURCE_DIR}/cmake/record_build.cmake
                    BYPRODUCTS ${directory}/tenon_build.h VERBATIM)
  add_dependencies(${target} ${target}_build_record)
  target_include_directories(${target} PRIVATE ${directory})
endfunction()
