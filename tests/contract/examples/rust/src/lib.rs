//! An example backend in Rust without a single crate: commands run under prlimit, which caps open files and switches
//! core dumps off.
//!
//! It has no boundary and says so: its kind is `none`, it claims `resource_limits` and nothing else, so a launch that needs more than that
//! is refused. Option: open_files, 16 to 1048576, default 1024.

mod abi;

use abi::*;
use std::os::raw::c_void;
use std::path::Path;

const LAUNCHER: &str = "/usr/bin/prlimit";

struct Instance {
    open_files: u32,
}

const TOO_OLD: &str = "this host is older than version 1.0 of the plugin ABI";

unsafe extern "C" fn create(
    _host: *const Host,
    config: *const Config,
    out: *mut *mut Plugin,
    error: *mut Text,
) -> Status {
    match parse_options(config) {
        Ok(open_files) => {
            *out = Box::into_raw(Box::new(Instance { open_files })) as *mut Plugin;
            OK
        }
        Err(text) => {
            write_text(error, &text);
            INVALID
        }
    }
}

unsafe fn parse_options(config: *const Config) -> Result<u32, String> {
    let mut open_files = 1024;
    if !has!(config, Config, option_count) {
        return Err(TOO_OLD.to_string());
    }
    let config = &*config;
    if config.option_count > 0 && (config.option_stride as usize) < std::mem::size_of::<Option_>() {
        return Err(TOO_OLD.to_string());
    }
    for i in 0..config.option_count {
        // Step by the stride: a newer host has larger options.
        let at = (config.options as *const u8).add(i * config.option_stride as usize);
        let option = &*(at as *const Option_);
        let key = String::from_utf8_lossy(bytes_of(option.key)).into_owned();
        if key != "open_files" {
            let shown: String = key.chars().take(64).collect();
            return Err(format!("unknown option '{}'; known: open_files", shown));
        }
        open_files = std::str::from_utf8(bytes_of(option.value))
            .ok()
            .and_then(|text| text.parse().ok())
            .filter(|number| (16..=1_048_576).contains(number))
            .ok_or_else(|| "option open_files: not a number from 16 to 1048576".to_string())?;
    }
    Ok(open_files)
}

unsafe extern "C" fn destroy(plugin: *mut Plugin) {
    drop(Box::from_raw(plugin as *mut Instance));
}

unsafe extern "C" fn probe(
    _plugin: *mut Plugin,
    _request: *const ProbeRequest,
    result: *mut ProbeResult,
    error: *mut Text,
) -> Status {
    if !has!(result, ProbeResult, cause) {
        write_text(error, TOO_OLD);
        return INVALID;
    }
    let available = Path::new(LAUNCHER).exists();
    let result = &mut *result;
    result.available = available as u32;
    result.requires_install = !available as u32;
    result.enforced = if available { RULE_RESOURCE_LIMITS } else { 0 };
    write_text(&mut result.note, "open files capped, no core dumps, no boundary (/usr/bin/prlimit)");
    if !available {
        write_text(&mut result.hint, "install util-linux");
        write_text(&mut result.cause, "missing-tool");
    }
    OK
}

unsafe extern "C" fn plan(
    plugin: *mut Plugin,
    request: *const PlanRequest,
    sink: *const PlanSink,
    error: *mut Text,
) -> Status {
    if !has!(request, PlanRequest, init_path) || !has!(sink, PlanSink, flags) {
        write_text(error, TOO_OLD);
        return INVALID;
    }
    let instance = &*(plugin as *const Instance);
    let request = &*request;
    let sink = &*sink;
    if request.rule_count > 0 && (request.rule_stride as usize) < std::mem::size_of::<Rule>() {
        write_text(error, TOO_OLD);
        return INVALID;
    }
    for i in 0..request.rule_count {
        let at = (request.rules as *const u8).add(i * request.rule_stride as usize);
        let rule = &*(at as *const Rule);
        // Never claim a bit whose rules you do not understand.
        if rule.bit == RULE_RESOURCE_LIMITS && rule.kind > KIND_EXEC_GRANT {
            write_text(error, &format!("rule {} is newer than this plugin", i));
            return UNENFORCEABLE;
        }
    }
    let arguments = [
        LAUNCHER.to_string(),
        format!("--nofile={0}:{0}", instance.open_files),
        "--core=0:0".to_string(),
        format!("/proc/self/fd/{}", request.init_fd),
        "--channel".to_string(),
        request.channel_fd.to_string(),
    ];
    for argument in &arguments {
        // The host copies it during the call.
        (sink.argument)(sink.ctx, Str { ptr: argument.as_ptr() as *const _, len: argument.len() });
    }
    (sink.enforces)(sink.ctx, RULE_RESOURCE_LIMITS);
    (sink.flags)(sink.ctx, PLAN_UNCONFINED);
    OK
}

static BACKEND: Backend = Backend {
    size: std::mem::size_of::<Backend>() as u32,
    reserved: 0,
    kind: str_of(b"none"),
    probe,
    plan,
};

unsafe extern "C" fn get_extension(_plugin: *mut Plugin, name: Str) -> *const c_void {
    if bytes_of(name) == BACKEND_EXTENSION {
        return &BACKEND as *const Backend as *const c_void;
    }
    std::ptr::null()
}

static DESCRIPTOR: Descriptor = Descriptor {
    size: std::mem::size_of::<Descriptor>() as u32,
    abi_minor: ABI_MINOR,
    name: str_of(b"example-prlimit"),
    version: str_of(b"1.0"),
    create,
    destroy,
    get_extension,
};

#[no_mangle]
pub extern "C" fn ccbox_plugin_v1() -> *const Descriptor {
    &DESCRIPTOR
}
