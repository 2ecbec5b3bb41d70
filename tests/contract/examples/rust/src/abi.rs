//! ccbox/plugin.h, version 1.0, as far as a backend needs it. Append members at the end as the header does.

use std::os::raw::{c_char, c_void};

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Str {
    pub ptr: *const c_char,
    pub len: usize,
}

#[repr(C)]
pub struct Text {
    pub ptr: *mut c_char,
    pub capacity: usize,
    pub length: usize,
}

pub type Status = i32;
pub const OK: Status = 0;
pub const INVALID: Status = 1;
pub const UNENFORCEABLE: Status = 3;

pub const RULE_RESOURCE_LIMITS: u64 = 1 << 7;
pub const KIND_EXEC_GRANT: u32 = 7;
pub const PLAN_UNCONFINED: u32 = 1 << 1;
pub const ABI_MINOR: u32 = 0;
pub const BACKEND_EXTENSION: &[u8] = b"ccbox.backend/1";

#[repr(C)]
pub struct Option_ {
    pub key: Str,
    pub value: Str,
}

#[repr(C)]
pub struct Config {
    pub size: u32,
    pub option_stride: u32,
    pub options: *const Option_,
    pub option_count: usize,
}

/// Opaque to the host.
pub type Plugin = c_void;
/// Not used by this plugin.
pub type Host = c_void;

#[repr(C)]
pub struct Descriptor {
    pub size: u32,
    pub abi_minor: u32,
    pub name: Str,
    pub version: Str,
    pub create: unsafe extern "C" fn(*const Host, *const Config, *mut *mut Plugin, *mut Text) -> Status,
    pub destroy: unsafe extern "C" fn(*mut Plugin),
    pub get_extension: unsafe extern "C" fn(*mut Plugin, Str) -> *const c_void,
}

#[repr(C)]
pub struct ProbeRequest {
    pub size: u32,
    pub depth: u32,
}

#[repr(C)]
pub struct ProbeResult {
    pub size: u32,
    pub available: u32,
    pub requires_install: u32,
    pub reserved: u32,
    pub enforced: u64,
    pub note: Text,
    pub hint: Text,
    pub cause: Text,
}

#[repr(C)]
pub struct Rule {
    pub kind: u32,
    pub flags: u32,
    pub bit: u64,
    pub path: Str,
    pub guest_path: Str,
    pub reason: Str,
}

#[repr(C)]
pub struct PlanRequest {
    pub size: u32,
    pub rule_stride: u32,
    pub rules: *const Rule,
    pub rule_count: usize,
    pub required: u64,
    pub waived: u64,
    pub session_id: Str,
    pub workdir: Str,
    pub home: Str,
    pub tmpdir: Str,
    pub network: u32,
    pub uid: u32,
    pub gid: u32,
    pub channel_fd: i32,
    pub init_fd: i32,
    pub init_path: Str,
}

#[repr(C)]
pub struct PlanSink {
    pub size: u32,
    pub reserved: u32,
    pub ctx: *mut c_void,
    pub argument: unsafe extern "C" fn(*mut c_void, Str),
    pub environment: unsafe extern "C" fn(*mut c_void, Str, Str),
    pub file: unsafe extern "C" fn(*mut c_void, Str, Str) -> i32,
    pub open_path: unsafe extern "C" fn(*mut c_void, Str) -> i32,
    pub layer: unsafe extern "C" fn(*mut c_void, usize, Str),
    pub enforces: unsafe extern "C" fn(*mut c_void, u64),
    pub flags: unsafe extern "C" fn(*mut c_void, u32),
}

#[repr(C)]
pub struct Backend {
    pub size: u32,
    pub reserved: u32,
    pub kind: Str,
    pub probe: unsafe extern "C" fn(*mut Plugin, *const ProbeRequest, *mut ProbeResult, *mut Text) -> Status,
    pub plan: unsafe extern "C" fn(*mut Plugin, *const PlanRequest, *const PlanSink, *mut Text) -> Status,
}

// The tables are constant and hold pointers to static data and functions only.
unsafe impl Sync for Descriptor {}
unsafe impl Sync for Backend {}

/// A string with static life.
pub const fn str_of(bytes: &'static [u8]) -> Str {
    Str { ptr: bytes.as_ptr() as *const c_char, len: bytes.len() }
}

/// The bytes of a borrowed string. They live as long as the call that passed it.
///
/// # Safety
/// `text` must come from the host and be used within the same call.
pub unsafe fn bytes_of<'a>(text: Str) -> &'a [u8] {
    if text.len == 0 {
        return &[];
    }
    std::slice::from_raw_parts(text.ptr as *const u8, text.len)
}

/// Writes one line, without control characters, cut between two characters at the capacity.
///
/// # Safety
/// `out` must point to a buffer of the host.
pub unsafe fn write_text(out: *mut Text, line: &str) {
    let out = &mut *out;
    let mut length = line.len().min(out.capacity);
    while !line.is_char_boundary(length) {
        length -= 1;
    }
    for (i, byte) in line.as_bytes()[..length].iter().enumerate() {
        let printable = if *byte < 0x20 || *byte == 0x7f { b'?' } else { *byte };
        *out.ptr.add(i) = printable as c_char;
    }
    out.length = length;
}

/// Whether `member` of the struct behind `ptr` lies inside the size its filler declared.
#[macro_export]
macro_rules! has {
    ($ptr:expr, $type:ty, $member:ident) => {{
        let base = std::mem::MaybeUninit::<$type>::uninit();
        let start = base.as_ptr();
        let member = std::ptr::addr_of!((*start).$member);
        let end = member as usize - start as usize + $crate::abi::size_of_pointee(member);
        std::ptr::addr_of!((*$ptr).size).read() as usize >= end
    }};
}

pub const fn size_of_pointee<T>(_: *const T) -> usize {
    std::mem::size_of::<T>()
}
