//! Who decides about calls: `pt_options_decider`, `pt_domain_set_decider`, the same for modules,
//! `pt_domain_decisions`.

use crate::boundary::{self, Decide, Out, User};
use crate::domain::DomainKind;
use crate::failure;
use crate::handle::Handle;
use crate::options::{self, OptionsKind};
use crate::policy::{self, EMULATE, KILL, SILENT};
use crate::structures::{CCall, CQuestion, Reason};
use postern::{Asked, Caller, Decider, Question, Verdict};
use std::ffi::{CString, c_int};
use std::ptr::{null, null_mut};

/// The decider that asks a function of the host; nobody for NULL.
fn closure(decide: Decide, user: User) -> Option<Decider> {
    let asks = move |_: &Caller<'_>, question: &Question<'_>| ask(decide, question, user);
    decide.is_some().then(|| Decider::closure(asks))
}

fn ask(decide: Decide, question: &Question<'_>, user: User) -> Verdict {
    let domain = CString::new(question.domain).unwrap_or_default();
    let mut shown = CQuestion {
        size: size_of::<CQuestion>(),
        domain: domain.as_ptr(),
        service: null(),
        call: null_mut(),
        integers: 0,
        floats: 0,
        integer: [0; 6],
        floating: [0; 8],
        result: 0,
        reason: Reason::NONE,
    };
    match question.call {
        Asked::Service {
            name,
            integers,
            floats,
            ..
        } => {
            let name = CString::new(name).unwrap_or_default();
            shown.service = name.as_ptr();
            shown.integers = integers.len() as u32;
            shown.floats = floats.len() as u32;
            shown.integer[..integers.len()].copy_from_slice(integers);
            shown.floating[..floats.len()].copy_from_slice(floats);
            match boundary::decide(decide, &mut shown, user) {
                0 => Verdict::Allow,
                EMULATE => Verdict::Emulate(shown.result, Vec::new()),
                KILL => Verdict::Kill(boundary::reason(shown.reason, SILENT)),
                errno => Verdict::Deny(errno),
            }
        }
        Asked::SystemCall(request) => policy::ask(request, |call: &mut CCall| {
            shown.call = call;
            let answer = boundary::decide(decide, &mut shown, user);
            // What is said in the question holds for the call, unless the call says it.
            if answer == KILL && call.reason.is_none() {
                call.reason = shown.reason;
            }
            answer
        }),
        _ => Verdict::Deny(0),
    }
}

/// `pt_options_decider`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_decider(
    options: Handle<OptionsKind>,
    decide: Decide,
    user: User,
) -> c_int {
    options::change(options, |options| {
        options.decider = closure(decide, user);
        Ok(())
    })
}

/// `pt_options_decider_module`
#[unsafe(no_mangle)]
pub extern "C" fn pt_options_decider_module(
    options: Handle<OptionsKind>,
    module: Handle<DomainKind>,
) -> c_int {
    options::change(options, |options| {
        options.decider = Some(Decider::module(&module.get()?.domain)?);
        Ok(())
    })
}

/// `pt_domain_set_decider`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_set_decider(
    domain: Handle<DomainKind>,
    decide: Decide,
    user: User,
) -> c_int {
    failure::code(|| {
        domain.get()?.domain.set_decider(closure(decide, user));
        Ok(())
    })
}

/// `pt_domain_set_decider_module`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_set_decider_module(
    domain: Handle<DomainKind>,
    module: Handle<DomainKind>,
) -> c_int {
    failure::code(|| {
        let decider = Decider::module(&module.get()?.domain)?;
        domain.get()?.domain.set_decider(Some(decider));
        Ok(())
    })
}

/// `pt_domain_decisions`
#[unsafe(no_mangle)]
pub extern "C" fn pt_domain_decisions(
    domain: Handle<DomainKind>,
    denied: Out<'_, u64>,
    failures: Out<'_, u64>,
) -> c_int {
    failure::code(|| {
        let counters = domain.get()?.domain.counters();
        denied.put(counters.denied_services.values().sum());
        failures.put(counters.decision_failures);
        Ok(())
    })
}
