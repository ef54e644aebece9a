//! The names of slots, for calls that found a slot to lead nowhere.
//!
//! Such a call is told the name, and does not wait for the namespace's lock: a creation holds that
//! for most of its time, so callers of a function that is deleted and created in turn would come
//! back always at the moment when it is deleted.

use postern_runtime::fork;
use std::sync::{Arc, Mutex};

/// By number.
pub(crate) struct SlotNames {
    /// Of the domain, for its share of the locks.
    number: usize,
    names: Mutex<Vec<Arc<str>>>,
}

impl SlotNames {
    pub(crate) fn new(number: usize) -> SlotNames {
        let names = Mutex::default();
        SlotNames { number, names }
    }

    /// Names a slot: the next one, or one that is another function's now.
    pub(crate) fn set(&self, slot: u32, name: &Arc<str>) {
        let mut names = fork::lock_leaf(self.number, &self.names);
        match names.get_mut(slot as usize) {
            Some(old) => *old = name.clone(),
            None => names.push(name.clone()),
        }
    }

    /// The name of a slot that there is.
    pub(crate) fn get(&self, slot: u32) -> Option<Arc<str>> {
        let names = fork::lock_leaf(self.number, &self.names);
        names.get(slot as usize).cloned()
    }
}

#[cfg(all(test, feature = "ecode"))]
mod tests {
    use crate::Namespace;
    use postern_runtime::FaultKind;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn who_calls_a_deleted_function_does_not_wait_for_a_creation() {
        let space = Namespace::builder().build().unwrap();
        space.create("a", "int f(void) { return 1; }").unwrap();
        space.create("b", "int g(void) { return 2; }").unwrap();
        let f = space.func::<fn() -> i32>("f").unwrap();
        assert!(space.delete("f"));
        // As a creation does.
        let held = space.code().lock();
        let (tell, told) = channel();
        let call = std::thread::spawn(move || tell.send(f.call().unwrap_err()));
        let error = told.recv_timeout(Duration::from_secs(60));
        drop(held);
        call.join().unwrap().unwrap();
        let fault = error.expect("it waited").fault().unwrap().clone();
        assert_eq!(fault.kind, FaultKind::Deleted);
        assert_eq!(fault.message.as_deref(), Some("f"));
    }

    #[test]
    fn a_slot_that_is_anothers_has_the_others_name() {
        let room = crate::Capacity {
            functions: 1,
            ..crate::Capacity::default()
        };
        let space = Namespace::builder().room(room).build().unwrap();
        for name in (0..300).map(|n| format!("f{n}")) {
            let source = format!("int {name}(void) {{ return 1; }}");
            space.create("a", &source).unwrap();
            let f = space.func::<fn() -> i32>(&name).unwrap();
            assert!(space.delete(&name));
            let error = f.call().unwrap_err();
            assert_eq!(error.fault().unwrap().message.as_ref(), Some(&name));
        }
    }
}
