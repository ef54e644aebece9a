//! From the raw facts of a call that was ended to a kind of fault and its place.

use super::{Fault, FaultKind, Registers, SharedPage};
use crate::domain::DomainInner;
use crate::share;
use crate::value::Offset;
use postern_gates::map::Prot;
use postern_gates::outcome::{self, RawFault};
use postern_image::MemoryLayout;
use postern_verifier::window::{NULL_GUARD, PAGE, THREAD_BLOCK, WINDOW_SIZE};

/// `ud2`.
const UD2: &[u8] = &[0x0f, 0x0b];

/// `cmpq $0x20841f0f, %gs:(%r11d)`: the second instruction of a guarded sequence.
const TARGET_CHECK: &[u8] = &[0x65, 0x67, 0x49, 0x81, 0x3b, 0x0f, 0x1f, 0x84, 0x20];

impl SharedPage {
    /// The page at `offset`, if any area of the process is there and nothing else of the domain's.
    fn at(inner: &DomainInner, offset: u32) -> Option<SharedPage> {
        let seen = inner.instance.shared_at(offset);
        if seen.is_none() && inner.instance.accessible(offset, 1, false) {
            return None;
        }
        let (start, area) = share::area_at(offset)?;
        Some(SharedPage {
            area,
            start: Offset(start),
            page: (offset - start) / PAGE,
            protection: seen.unwrap_or(Prot::None),
        })
    }
}

impl Fault {
    pub(crate) fn new(inner: &DomainInner, raw: &RawFault, message: Option<String>) -> Fault {
        let image = inner.image.clone();
        let mut fault = Fault {
            kind: FaultKind::Aborted,
            domain: inner.name.clone(),
            offset: None,
            address: None,
            shared: None,
            registers: None,
            backtrace: Vec::new(),
            depth: raw.depth,
            signal: None,
            message,
            image,
            data_stack: inner.instance.stack_size(),
            units: Vec::new(),
        };
        if raw.located {
            fault.locate(raw);
        }
        fault.kind = match raw.kind {
            outcome::SIGNAL => {
                fault.signal = Some(raw.signal);
                fault.classify(inner, raw)
            }
            outcome::DEADLINE => FaultKind::Deadline,
            outcome::INTERRUPT => FaultKind::Interrupted,
            outcome::ANOTHER => FaultKind::AnotherThread,
            outcome::SERVICE_STACK => FaultKind::ServiceStack,
            outcome::KILL => FaultKind::Killed,
            _ => FaultKind::Aborted,
        };
        fault.name_units(inner);
        fault
    }

    /// Notes the names and lines of all offsets in units.
    fn name_units(&mut self, inner: &DomainInner) {
        let Some(code) = inner.code.get() else {
            return;
        };
        // A return address is behind its call.
        let calls = self.backtrace.iter().map(|o| o.0.wrapping_sub(1));
        let offsets = self.offset.iter().map(|o| o.0).chain(calls);
        let named = offsets.filter_map(|offset| Some((offset, code.describe(offset)?)));
        self.units = named.collect();
    }

    fn locate(&mut self, raw: &RawFault) {
        let mut registers = Registers::default();
        registers.0.copy_from_slice(&raw.registers[..15]);
        self.registers = Some(registers);
        let pc = raw.registers[15].wrapping_sub(raw.base);
        self.offset = (pc < WINDOW_SIZE).then_some(Offset(pc as u32));
        let kept = (raw.depth as usize).min(raw.backtrace.len());
        self.backtrace = raw.backtrace[..kept].iter().map(|&o| Offset(o)).collect();
    }

    /// From the processor's facts to a kind. Where the access went decides, then what it was.
    fn classify(&mut self, inner: &DomainInner, raw: &RawFault) -> FaultKind {
        const WRITE: u64 = 2;
        const FETCH: u64 = 16;
        const GENERAL_PROTECTION: u64 = 13;
        match raw.signal {
            libc::SIGFPE => return FaultKind::Arithmetic,
            libc::SIGTRAP => {
                // The trap is reported after the int3. The toolchain puts one where the check of a
                // jump target fails.
                self.offset = self.offset.map(|o| Offset(o.0.wrapping_sub(1)));
                let code = inner.code.get();
                let deleted = self.offset.zip(code).and_then(|(o, c)| c.deleted_at(o.0));
                if deleted.is_some() {
                    self.message = deleted;
                    return FaultKind::Deleted;
                }
                self.address = Some(Offset(raw.registers[10] as u32));
                return FaultKind::BadJump;
            }
            libc::SIGILL => {
                let trap = self.text_is(inner, UD2);
                return if trap {
                    FaultKind::Trap
                } else {
                    FaultKind::IllegalInstruction
                };
            }
            _ => {}
        }
        if self.text_is(inner, TARGET_CHECK) {
            // The check of a jump target read it where nothing is mapped.
            self.address = Some(Offset(raw.registers[10] as u32));
            return FaultKind::BadJump;
        }
        if raw.trap == GENERAL_PROTECTION {
            return FaultKind::Misaligned;
        }
        let rsp = raw.registers[16];
        if self.offset.is_none() || (raw.address < rsp && rsp - raw.address <= 64) {
            // Only a call's push goes there, in text or in a gate that the extension called.
            return FaultKind::ControlStackOverflow;
        }
        let relative = raw.address.wrapping_sub(raw.base);
        if relative >= WINDOW_SIZE + u64::from(NULL_GUARD) {
            return FaultKind::Execute;
        }
        let address = relative as u32;
        self.address = Some(Offset(address));
        if raw.error & FETCH != 0 {
            return FaultKind::Execute;
        }
        let write = raw.error & WRITE != 0;
        if raw.signal == libc::SIGBUS {
            self.shared = SharedPage::at(inner, address);
            return FaultKind::Bus;
        }
        let layout = &self.image.tables.layout;
        let r15 = raw.registers[14] as i64;
        if relative < u64::from(NULL_GUARD) || relative >= WINDOW_SIZE {
            FaultKind::NullPointer
        } else if below_a_stack(layout, inner, address, r15) {
            FaultKind::DataStackOverflow
        } else {
            self.shared = SharedPage::at(inner, address);
            match write {
                true if inner.instance.accessible(address, 1, false) => FaultKind::ReadOnly,
                _ if self.shared.is_none() && inner.instance.just_above_heap(address) => {
                    FaultKind::HeapLimit
                }
                true => FaultKind::Write,
                false => FaultKind::Read,
            }
        }
    }

    /// Whether the instruction at the fault's place begins with these bytes.
    fn text_is(&self, inner: &DomainInner, expected: &[u8]) -> bool {
        let in_unit = |o: Offset| inner.code.get().is_some_and(|c| c.text_is(o.0, expected));
        self.offset
            .is_some_and(|o| self.image.text.is(o.0, expected) || in_unit(o))
    }
}

/// Whether an access at `address` is one that ran off the low end of a data stack.
fn below_a_stack(layout: &MemoryLayout, inner: &DomainInner, address: u32, r15: i64) -> bool {
    const REACH: u32 = 1 << 20;
    // Only a frame that is larger than what is left brings the pointer below the image's own stack,
    // however far, also below zero.
    if r15 < i64::from(layout.stack) {
        return true;
    }
    let (instance, r15) = (&inner.instance, r15 as u32);
    let size = instance.stack_size();
    let near = |bottom: u32| {
        (bottom.saturating_sub(REACH)..bottom).contains(&address)
            && (bottom.saturating_sub(REACH)..bottom.saturating_add(size)).contains(&r15)
            && r15.abs_diff(address) < REACH
    };
    let own = instance.has_own_stack()
        && near(layout.stack)
        && r15 < layout.data.saturating_sub(THREAD_BLOCK);
    own || instance.just_below_stacks(r15) || instance.extra_stack_bottoms().any(near)
}
