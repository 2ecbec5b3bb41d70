# What `cmake --install` puts under the prefix, and the CMake package `ccbox` for projects that make plugins:
#   bin/{ccbox,cc_server}   lib/ccbox/{ccbox-init,ccbox-broker,ccbox-net-connect}   lib/ccbox/plugins/*.so   etc/ccbox/*.yaml (/etc/ccbox for the prefix /usr)
#   include/ccbox/plugin.h(pp)   lib/cmake/ccbox   share/man/man1
# The places are the ones that kernel/paths.cpp looks in, hence no GNUInstallDirs: lib64 or lib/<arch> would hide them.
include(CMakePackageConfigHelpers)

# The loader refuses plugins in a directory that a group may write, whatever the umask of whoever installs.
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

install(TARGETS ccbox cc_server RUNTIME DESTINATION bin)
install(TARGETS ccbox-init ccbox-broker ccbox-net-connect RUNTIME DESTINATION lib/ccbox)
get_property(ccbox_plugins GLOBAL PROPERTY CCBOX_PLUGINS)
install(TARGETS ${ccbox_plugins} LIBRARY DESTINATION lib/ccbox/plugins)
install(FILES ${CMAKE_SOURCE_DIR}/docs/ccbox.1 DESTINATION share/man/man1)

# Configuration belongs to the operator: what was edited stays, and the new one is put beside it.
file(GLOB ccbox_configuration CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/config/*.yaml)
install(CODE "set(files \"${ccbox_configuration}\")")
install(CODE [[
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(directory "/etc/ccbox")
  else()
    set(directory "${CMAKE_INSTALL_PREFIX}/etc/ccbox")
  endif()
  foreach(source IN LISTS files)
    get_filename_component(name "${source}" NAME)
    set(installed "$ENV{DESTDIR}${directory}/${name}")
    if(EXISTS "${installed}")
      execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${source}" "${installed}"
        RESULT_VARIABLE differs OUTPUT_QUIET ERROR_QUIET)
      if(differs)
        message(STATUS "Keeping your ${installed}; the shipped one is ${installed}.new")
        configure_file("${source}" "${installed}.new" COPYONLY)
        list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${directory}/${name}.new")
        continue()
      endif()
    endif()
    file(INSTALL DESTINATION "${directory}" TYPE FILE FILES "${source}")
  endforeach()
]])

install(DIRECTORY ${CMAKE_SOURCE_DIR}/kernel/abi/ccbox DESTINATION include)
set_target_properties(ccbox_abi PROPERTIES EXPORT_NAME abi)
target_include_directories(ccbox_abi INTERFACE $<INSTALL_INTERFACE:include>)
install(TARGETS ccbox_abi EXPORT ccboxTargets)
install(EXPORT ccboxTargets NAMESPACE ccbox:: DESTINATION lib/cmake/ccbox)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/ccboxConfigVersion.cmake
  VERSION ${PROJECT_VERSION} COMPATIBILITY AnyNewerVersion)
install(FILES ${CMAKE_SOURCE_DIR}/plugins/ccboxConfig.cmake ${CMAKE_BINARY_DIR}/ccboxConfigVersion.cmake
  ${CMAKE_SOURCE_DIR}/plugins/ccbox_add_plugin.cmake ${CMAKE_SOURCE_DIR}/plugins/exports.map
  DESTINATION lib/cmake/ccbox)
