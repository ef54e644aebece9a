//! What system calls of extensions may do: `pt_policy_…`, `pt_domain_set_policy`, `pt_domain_main`,
//! `pt_domain_system_calls`.
//!
//! A policy here is a draft; options and domains take what it is at that moment.

use crate::boundary::{
    CallHandler, Out, Reader, Text, TextVector, User, Writer, answer, read, reason, write,
};
use crate::domain::DomainKind;
use crate::failure::{self, Code, Failure};
use crate::handle::{Handle, kind};
use crate::object;
use crate::options::{self, OptionsKind};
use crate::structures::{CCall, Reason};
use postern::policy::{Call, Input, Request, Sink};
use postern::{Access, Caller, Policy, Rules, Verdict};
use std::ffi::{CString, OsStr, c_int};
use std::os::unix::ffi::OsStrExt;
use std::ptr::null;

/// What a policy begins with.
#[derive(Clone, Copy)]
enum Base {
    None,
    Compute,
    Files,
}

/// A policy being put together.
#[derive(Clone)]
pub struct Draft {
    base: Base,
    rules: Rules,
    input: Input,
    output: Sink,
    error: Sink,
    decide: CallHandler,
    user: User,
}

kind!(PolicyKind: object::Draft<Draft>, b'P', "pt_policy");

/// Names in C and values, for the test that the header agrees.
pub const VERDICTS: [(&str, i32); 3] =
    [("PT_ALLOW", 0), ("PT_EMULATE", EMULATE), ("PT_KILL", KILL)];
/// As [`VERDICTS`].
pub const STREAMS: [(&str, i32); 2] = [("PT_INHERIT", 0), ("PT_DISCARD", 1)];
pub(crate) const EMULATE: i32 = -1;
pub(crate) const KILL: i32 = -2;

impl Draft {
    fn policy(&self) -> Policy {
        let base = match self.base {
            Base::None => Policy::none(),
            Base::Compute => Policy::compute(),
            Base::Files => Policy::files(self.rules.clone()),
        };
        let base = base
            .stdin(self.input.clone())
            .stdout(self.output.clone())
            .stderr(self.error.clone());
        let (decide, user) = (self.decide, self.user);
        match decide.is_some() {
            false => base,
            true => Policy::custom(base, move |_: &Caller<'_>, request: &Request| {
                ask(request, |call| answer(decide, call, user))
            }),
        }
    }
}

/// Shows a call to a function of the host, and what that says to it.
pub(crate) fn ask(request: &Request, decide: impl FnOnce(&mut CCall) -> c_int) -> Verdict {
    let [first, second] = request.call.paths().map(|path| path.map(bytes_of));
    let pointer = |path: &Option<CString>| path.as_ref().map_or(null(), |path| path.as_ptr());
    let bytes: &[u8] = match &request.call {
        Call::Write { bytes, .. } => bytes,
        _ => &[],
    };
    let mut room = vec![0; request.room];
    let mut call = CCall {
        size: size_of::<CCall>(),
        number: request.number,
        words: request.words,
        path: pointer(&first),
        second_path: pointer(&second),
        bytes: bytes.as_ptr().cast(),
        length: bytes.len(),
        answer: room.as_mut_ptr().cast(),
        room: room.len(),
        answered: 0,
        result: 0,
        reason: Reason::NONE,
    };
    match decide(&mut call) {
        0 => Verdict::Allow,
        EMULATE => {
            room.truncate(call.answered);
            Verdict::Emulate(call.result, room)
        }
        KILL => Verdict::Kill(reason(call.reason, SILENT)),
        errno => Verdict::Deny(errno),
    }
}

/// The reason of a function that gives none.
pub(crate) const SILENT: &str = "the host's policy says no";

fn bytes_of(path: &[u8]) -> CString {
    CString::new(path).unwrap_or_default()
}

fn make(base: Base) -> Handle<PolicyKind> {
    failure::or(Handle::NULL, || {
        Ok(Handle::draft(Draft {
            base,
            rules: Rules::new(),
            input: Input::Empty,
            output: Sink::Inherit,
            error: Sink::Inherit,
            decide: CallHandler::NONE,
            user: User::default(),
        }))
    })
}

/// The policy as it is now; NULL means none.
fn get(policy: Handle<PolicyKind>) -> Result<Policy, Failure> {
    if policy.0 == 0 {
        return Ok(Policy::none());
    }
    Ok(policy.as_it_is()?.policy())
}

fn change(
    policy: Handle<PolicyKind>,
    change: impl FnOnce(&mut Draft) -> Result<(), Failure>,
) -> c_int {
    failure::code(|| policy.change(change))
}

/// `pt_policy_none`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_none() -> Handle<PolicyKind> {
    make(Base::None)
}

/// `pt_policy_compute`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_compute() -> Handle<PolicyKind> {
    make(Base::Compute)
}

/// `pt_policy_files`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_files() -> Handle<PolicyKind> {
    make(Base::Files)
}

/// `pt_policy_free`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_free(policy: Handle<PolicyKind>) -> c_int {
    failure::code(|| policy.take().map(drop))
}

/// `pt_policy_grant`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_grant(
    policy: Handle<PolicyKind>,
    guest: Text<'_>,
    host: Text<'_>,
    access: c_int,
) -> c_int {
    change(policy, |draft| {
        let access = match access {
            1 => Access::Read,
            3 => Access::ReadWrite,
            _ => {
                let message = format!("{access} is no access; PT_READ_ONLY, PT_READ_WRITE are");
                return Err(Failure::new(Code::Argument, message));
            }
        };
        if !matches!(draft.base, Base::Files) {
            let message = "directories are granted to policies of pt_policy_files";
            return Err(Failure::new(Code::Argument, message));
        }
        let guest = guest.get("extension's path")?;
        let host = OsStr::from_bytes(host.bytes("directory")?);
        let rules = draft.rules.clone().grant(guest, host, access);
        draft.rules = rules.map_err(|error| {
            let code = match error {
                postern::policy::GrantError::Host { .. } => Code::File,
                _ => Code::Argument,
            };
            Failure::new(code, error.to_string())
        })?;
        Ok(())
    })
}

/// `pt_policy_limits`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_limits(
    policy: Handle<PolicyKind>,
    open_files: u32,
    written: u64,
    file_size: u64,
) -> c_int {
    change(policy, |draft| {
        let mut rules = draft.rules.clone();
        if open_files != 0 {
            rules = rules.open_files(open_files as usize);
        }
        if written != 0 {
            rules = rules.written(written);
        }
        if file_size != 0 {
            rules = rules.file_size(file_size);
        }
        draft.rules = rules;
        Ok(())
    })
}

/// `pt_policy_stream`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_stream(policy: Handle<PolicyKind>, stream: c_int, how: c_int) -> c_int {
    change(policy, |draft| {
        let sink = |draft: &mut Draft, sink| match stream {
            1 => draft.output = sink,
            _ => draft.error = sink,
        };
        match (stream, how) {
            (0, 0) => draft.input = Input::Inherit,
            (0, 1) => draft.input = Input::Empty,
            (1 | 2, 0) => sink(draft, Sink::Inherit),
            (1 | 2, 1) => sink(draft, Sink::Discard),
            _ => {
                let message = "streams are 0, 1 and 2, and go PT_INHERIT or PT_DISCARD";
                return Err(Failure::new(Code::Argument, message));
            }
        }
        Ok(())
    })
}

/// `pt_policy_stdin`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_stdin(policy: Handle<PolicyKind>, reader: Reader, user: User) -> c_int {
    change(policy, |draft| {
        draft.input = match reader.is_some() {
            true => Input::function(move |to| read(reader, to, user)),
            false => Input::Empty,
        };
        Ok(())
    })
}

/// `pt_policy_stdout`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_stdout(
    policy: Handle<PolicyKind>,
    writer: Writer,
    user: User,
) -> c_int {
    write_to(policy, writer, user, |draft| &mut draft.output)
}

/// `pt_policy_stderr`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_stderr(
    policy: Handle<PolicyKind>,
    writer: Writer,
    user: User,
) -> c_int {
    write_to(policy, writer, user, |draft| &mut draft.error)
}

fn write_to(
    policy: Handle<PolicyKind>,
    writer: Writer,
    user: User,
    stream: fn(&mut Draft) -> &mut Sink,
) -> c_int {
    change(policy, |draft| {
        *stream(draft) = match writer.is_some() {
            true => Sink::function(move |bytes| write(writer, bytes, user)),
            false => Sink::Discard,
        };
        Ok(())
    })
}

/// `pt_policy_custom`
#[unsafe(no_mangle)]
pub extern "C" fn pt_policy_custom(
    policy: Handle<PolicyKind>,
    decide: CallHandler,
    user: User,
) -> c_int {
    change(policy, |draft| {
        (draft.decide, draft.user) = (decide, user);
        Ok(())
    })
}

/// `pt_options_policy`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_policy(
    options: Handle<OptionsKind>,
    policy: Handle<PolicyKind>,
) -> c_int {
    let policy = get(policy);
    options::change(options, |options| {
        options.policy = policy?;
        Ok(())
    })
}

/// `pt_domain_set_policy`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_set_policy(
    domain: Handle<DomainKind>,
    policy: Handle<PolicyKind>,
) -> c_int {
    failure::code(|| {
        let policy = get(policy)?;
        domain.get()?.domain.set_policy(policy);
        Ok(())
    })
}

/// `pt_domain_system_calls`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_system_calls(
    domain: Handle<DomainKind>,
    granted: Out<'_, u64>,
    refused: Out<'_, u64>,
    last_refused: Out<'_, i64>,
) -> c_int {
    failure::code(|| {
        let counters = domain.get()?.domain.counters();
        granted.put(counters.system_calls);
        refused.put(counters.refused_system_calls);
        last_refused.put(counters.last_refused.map_or(-1, |number| number as i64));
        Ok(())
    })
}

/// `pt_domain_main`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_main(
    domain: Handle<DomainKind>,
    argc: c_int,
    argv: TextVector<'_>,
    envp: TextVector<'_>,
) -> c_int {
    failure::number(|| {
        let count = usize::try_from(argc)
            .map_err(|_| Failure::new(Code::Argument, format!("{argc} arguments")))?;
        let arguments = argv.first(count, "argument")?;
        let environment = envp.all();
        let domain = domain.get()?;
        // The low byte, as a parent process gets it, so that no status is an error code.
        let status = domain.domain.run_main(&arguments, &environment)?;
        Ok(i64::from(status as u8))
    }) as c_int
}
