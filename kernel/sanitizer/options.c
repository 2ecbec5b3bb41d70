// What the address sanitizer starts with in our programs.
//
// It wants to know where each thread's storage of a loaded plugin lies. glibc does not tell, so it guesses: a
// block that begins 16 bytes into a page has glibc 2.19's header in front of it, with its size. With
// glibc 2.36 the block is plain memory of the sanitizer's own allocator; now and then it begins there too,
// with something else in front of it, and the search for leaks follows what it takes for a size out of the
// mapped memory. Without the guess it finds these blocks as it finds all allocated memory.
__attribute__((visibility("default"))) const char* __asan_default_options(void);

const char* __asan_default_options(void) {
  return "intercept_tls_get_addr=0";
}
