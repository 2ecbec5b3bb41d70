# ccbox_add_plugin(NAME SOURCES... [LIBRARIES lib...]): a module that sees the ABI headers only and exports exactly
# ccbox_plugin_v1. Hidden visibility alone still leaks symbols of the libraries it uses, hence the export map.
# Serves this tree and, from the installed package, the projects of others.
function(ccbox_add_plugin name)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  set(export_map ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/exports.map)
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden LINK_DEPENDS ${export_map})
  target_link_libraries(${name} PRIVATE ccbox::abi ${arg_LIBRARIES})
  if(TARGET ccbox_options)
    target_link_libraries(${name} PRIVATE ccbox_options)
  endif()
  set_property(GLOBAL APPEND PROPERTY CCBOX_PLUGINS ${name})
  target_link_options(${name} PRIVATE -Wl,--version-script=${export_map} -Wl,-z,nodelete)
  # Each start of ccbox copies the file: what is not in it costs nothing.
  target_compile_options(${name} PRIVATE $<$<CONFIG:Release>:-Os>)
  target_link_options(${name} PRIVATE $<$<CONFIG:Release>:-Wl,-s>)
  # No C++ type crosses the boundary, so a plugin carries its runtime itself: loading it resolves few symbols.
  if(NOT CCBOX_SANITIZE AND NOT CCBOX_FUZZ)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()
