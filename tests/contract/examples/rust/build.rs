// A loaded plugin is never unloaded. rustc exports only what is `#[no_mangle] pub` from a cdylib, so no export map.
fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
