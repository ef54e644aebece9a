//! The process: `pt_version`, `pt_init`, `pt_supported`.

use crate::boundary::{self, ConfigIn, Flag, LookFunction, Out, User};
use crate::failure::{self, Code, Failure};
use crate::structures::CConfig;
use postern::Config;
use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;
use std::time::Duration;

const NO_HOT_WINDOW: u32 = 1;
const NO_HANDLERS: u32 = 2;
const ADOPT_HANDLERS: u32 = 4;
const RESTORE_GS: u32 = 8;
const DUMP: u32 = 16;

/// Names in C and values, for the test that the header agrees.
pub const FLAGS: [(&str, i32); 5] = [
    ("PT_NO_HOT_WINDOW", NO_HOT_WINDOW as i32),
    ("PT_NO_HANDLERS", NO_HANDLERS as i32),
    ("PT_ADOPT_HANDLERS", ADOPT_HANDLERS as i32),
    ("PT_RESTORE_GS", RESTORE_GS as i32),
    ("PT_DUMP", DUMP as i32),
];

impl CConfig {
    fn config(self) -> Result<Config, Failure> {
        let wrong = |what: String| Err(Failure::new(Code::Argument, what));
        let mut config = Config::default();
        let known = NO_HOT_WINDOW | NO_HANDLERS | ADOPT_HANDLERS | RESTORE_GS | DUMP;
        if self.flags & !known != 0 || self.reserved != 0 {
            return wrong(format!(
                "pt_config.flags {:#x} or reserved {} has bits of no meaning; zero the structure first",
                self.flags, self.reserved
            ));
        }
        config.hot_window = self.flags & NO_HOT_WINDOW == 0;
        config.install_handlers = self.flags & NO_HANDLERS == 0;
        config.dump = self.flags & DUMP != 0;
        config.adopt_handlers = self.flags & ADOPT_HANDLERS != 0;
        config.restore_gs = self.flags & RESTORE_GS != 0;
        if self.control_stack != 0 {
            config.control_stack = usize::try_from(self.control_stack).unwrap_or(usize::MAX);
        }
        if self.tick_us != 0 {
            config.tick = Duration::from_micros(self.tick_us.into());
        }
        if self.signal != 0 {
            if !(1..=libc::SIGRTMAX()).contains(&self.signal)
                || [libc::SIGKILL, libc::SIGSTOP].contains(&self.signal)
            {
                return wrong(format!(
                    "signal {} cannot be handled; choose one from SIGRTMIN to SIGRTMAX",
                    self.signal
                ));
            }
            config.abort_signal = self.signal;
        }
        Ok(config)
    }
}

/// A part of the version, at compile time.
const fn number(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version has three numbers"),
    }
}

/// `PT_VERSION`
pub const VERSION: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) * 1_000_000
    + number(env!("CARGO_PKG_VERSION_MINOR")) * 1000
    + number(env!("CARGO_PKG_VERSION_PATCH"));

/// `pt_version`
#[unsafe(no_mangle)]
pub extern "C" fn pt_version() -> u32 {
    VERSION
}

/// `pt_init`
#[unsafe(no_mangle)]
pub extern "C" fn pt_init(config: ConfigIn<'_>) -> c_int {
    failure::code(|| Ok(postern::init(config.get()?.config()?)?))
}

/// `pt_rearm`
#[unsafe(no_mangle)]
pub extern "C" fn pt_rearm() -> c_int {
    failure::code(|| Ok(postern::rearm()?))
}

/// `pt_set_safe_point`
#[unsafe(no_mangle)]
pub extern "C" fn pt_set_safe_point(flag: Flag, look: LookFunction, context: User) -> c_int {
    failure::code(|| {
        match flag.get()? {
            Some(flag) => postern::set_look(flag, boundary::look(look, context)?),
            None => postern::clear_safe_point(),
        }
        Ok(())
    })
}

/// `pt_interrupt_mine`
#[unsafe(no_mangle)]
pub extern "C" fn pt_interrupt_mine() -> c_int {
    // Nothing that `failure` does is for signal handlers.
    c_int::from(postern::interrupt_mine())
}

/// `pt_supported`
#[unsafe(no_mangle)]
pub extern "C" fn pt_supported(reason: Out<'_, *const c_char>) -> c_int {
    static WHY: OnceLock<Option<CString>> = OnceLock::new();
    failure::or(0, || {
        let why = WHY.get_or_init(|| postern::unsupported().map(|r| failure::text(&r)));
        reason.put(why.as_ref().map_or(c"".as_ptr(), |r| r.as_ptr()));
        Ok(c_int::from(why.is_none()))
    })
}
