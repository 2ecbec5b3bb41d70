# ccbox_add_plugin(NAME SOURCES... [LIBRARIES lib...]): a module that sees the ABI headers only and exports exactly
# ccbox_plugin_v1. Hidden visibility alone still leaks symbols of the libraries it uses, hence the export map.
set(CCBOX_PLUGIN_EXPORT_MAP ${CMAKE_CURRENT_LIST_DIR}/exports.map)
function(ccbox_add_plugin name)
  cmake_parse_arguments(arg "" "" "LIBRARIES" ${ARGN})
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins
    C_VISIBILITY_PRESET hidden CXX_VISIBILITY_PRESET hidden LINK_DEPENDS ${CCBOX_PLUGIN_EXPORT_MAP})
  target_link_libraries(${name} PRIVATE ccbox_abi ${arg_LIBRARIES})
  if(TARGET ccbox_options)
    target_link_libraries(${name} PRIVATE ccbox_options)
  endif()
  target_link_options(${name} PRIVATE -Wl,--version-script=${CCBOX_PLUGIN_EXPORT_MAP} -Wl,-z,nodelete)
endfunction()
