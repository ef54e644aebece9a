//! What the runtime asks of a policy, and who answers.

use crate::apply;
use crate::policy::{Base, Policy};
use crate::state::{PolicyState, System};
use postern_runtime::system::{
    self, Answer, Failure, Granted, Request, SystemPolicy, SystemService, Verdict,
};
use postern_runtime::{Caller, call};
use rustix::io::Errno;
use std::any::Any;
use std::sync::Arc;

impl SystemPolicy for Policy {
    fn service(&self) -> Arc<dyn SystemService> {
        Arc::new(System::new(self.clone()))
    }
}

impl SystemService for System {
    fn refuses_all(&self) -> bool {
        let state = self.state();
        state.policy.base == Base::None && state.policy.decide.is_none()
    }

    fn call(&self, caller: &Caller<'_>, request: &Request) -> Answer {
        let policy = self.policy();
        let decide = policy.decide.as_ref();
        let verdict = decide.map_or(Verdict::Allow, |decide| decide(caller, request));
        if let Some(answer) = system::answer(verdict) {
            return answer;
        }
        // Whoever was asked may have ended the call meanwhile.
        if call::ending() {
            return Err(Failure::Error(Errno::INTR));
        }
        apply::apply(self, &policy, caller, &request.call)
    }

    fn set_policy(&self, policy: Box<dyn Any>) {
        let policy = policy.downcast().map_or_else(|_| Policy::none(), |p| *p);
        let table = policy.table();
        let policy = Arc::new(policy);
        let before = std::mem::replace(&mut *self.state(), PolicyState { policy, table });
        drop(before);
    }

    fn reset(&self) {
        let table = self.policy().table();
        let before = std::mem::replace(&mut self.state().table, table);
        drop(before);
    }

    fn granted(&self) -> Granted {
        let policy = self.policy();
        Granted {
            policy: policy.base.name(),
            custom: policy.decide.is_some(),
            directories: policy.rules.directories().collect(),
        }
    }

    fn take_directory(&self, guest: &str) -> Option<bool> {
        self.without_directory(guest)
    }

    fn is_open_below(&self, guest: &str) -> Option<bool> {
        self.uses_directory(guest)
    }

    fn take_descriptor(&self, number: i32) -> bool {
        self.close_all_of(number)
    }

    fn is_open(&self, number: i32) -> bool {
        self.state().table.get(number).is_ok()
    }
}
