//! What an upcall interrupts goes on as it was.

use super::support::{cold, succeeds_in_child};
use super::{Flood, domain, victim, while_flooded};
use postern::{Caller, FaultKind};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

#[test]
fn the_hosts_registers_stay() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let values: [[u64; 4]; 16] =
        std::array::from_fn(|i| std::array::from_fn(|k| (i * 4 + k) as u64 * 0x0101_0101_0101));
    while_flooded(&attachment, 300, |round| {
        let mut after = [[0u64; 4]; 16];
        let sum: u64;
        unsafe {
            std::arch::asm!(
                "vmovdqu ymm0, [{v}]", "vmovdqu ymm1, [{v} + 32]", "vmovdqu ymm2, [{v} + 64]",
                "vmovdqu ymm3, [{v} + 96]", "vmovdqu ymm4, [{v} + 128]", "vmovdqu ymm5, [{v} + 160]",
                "vmovdqu ymm6, [{v} + 192]", "vmovdqu ymm7, [{v} + 224]", "vmovdqu ymm8, [{v} + 256]",
                "vmovdqu ymm9, [{v} + 288]", "vmovdqu ymm10, [{v} + 320]", "vmovdqu ymm11, [{v} + 352]",
                "vmovdqu ymm12, [{v} + 384]", "vmovdqu ymm13, [{v} + 416]", "vmovdqu ymm14, [{v} + 448]",
                "vmovdqu ymm15, [{v} + 480]",
                "xor rax, rax", "mov rcx, 300000",
                // The red zone is the interrupted function's, too.
                "2:", "mov [rsp - 64], rcx", "add rax, rcx", "add rax, [rsp - 64]",
                "dec rcx", "jnz 2b",
                "vmovdqu [{a}], ymm0", "vmovdqu [{a} + 32], ymm1", "vmovdqu [{a} + 64], ymm2",
                "vmovdqu [{a} + 96], ymm3", "vmovdqu [{a} + 128], ymm4", "vmovdqu [{a} + 160], ymm5",
                "vmovdqu [{a} + 192], ymm6", "vmovdqu [{a} + 224], ymm7", "vmovdqu [{a} + 256], ymm8",
                "vmovdqu [{a} + 288], ymm9", "vmovdqu [{a} + 320], ymm10", "vmovdqu [{a} + 352], ymm11",
                "vmovdqu [{a} + 384], ymm12", "vmovdqu [{a} + 416], ymm13", "vmovdqu [{a} + 448], ymm14",
                "vmovdqu [{a} + 480], ymm15", "vzeroupper",
                v = in(reg) values.as_ptr(), a = in(reg) after.as_mut_ptr(),
                out("rax") sum, out("rcx") _, clobber_abi("C"),
            );
        }
        assert_eq!((after, sum), (values, 300_000 * 300_001), "round {round}");
    });
}

#[test]
fn calls_and_services_have_their_results() {
    let (domain, victim) = (domain(), victim());
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
    let mix = victim.func::<fn(f64, f64, f64, f64) -> f64>("mix").unwrap();
    let many = victim
        .func::<fn(i64, i64, i64, i64, i64, i64, i64, i64) -> i64>("many")
        .unwrap();
    let serve = victim.func::<fn(i32) -> i32>("serve").unwrap();
    let halved = victim.func::<fn(f64) -> f64>("halved").unwrap();
    while_flooded(&attachment, 3000, |round| {
        for i in 0..200 {
            let n = i64::from(round);
            assert_eq!(add.call(i, 7).unwrap(), i + 7);
            let x = f64::from(i);
            assert_eq!(mix.call(x, 3.0, 1.0, 7.0).unwrap(), (x * 3.0 + 1.0) / 7.0);
            assert_eq!(many.call(n, 2, 3, 4, 5, 6, 70, 8).unwrap(), n + 72);
            assert_eq!(serve.call(i).unwrap(), 2 * i + 1);
            assert_eq!(halved.call(x).unwrap(), x);
        }
    });
}

/// The domain's own calls, while its handler interrupts them.
#[test]
fn a_domain_interrupts_itself() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let counted = domain.func::<fn() -> u64>("counted").unwrap();
    let mut last = 0;
    while_flooded(&attachment, 2000, |_| {
        for _ in 0..1000 {
            let now = counted.call().unwrap();
            assert!(now >= last);
            last = now;
        }
    });
}

#[test]
fn faults_and_deadlines_are_as_ever() {
    let (domain, victim) = (domain(), victim());
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let trap = victim.func::<fn()>("trap").unwrap();
    let brief = cold(&victim.image()).deadline(Some(Duration::from_millis(2)));
    let brief = brief.service("s", |_: &Caller<'_>, x: i32| x);
    let brief = brief
        .service("half", |_: &Caller<'_>, x: f64| x)
        .build()
        .unwrap();
    let spin = brief.func::<fn()>("spin").unwrap();
    while_flooded(&attachment, 1000, |round| {
        let error = trap.call().unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::Trap);
        assert!(victim.is_poisoned());
        victim.reset().unwrap();
        if round % 16 == 0 {
            let error = spin.call().unwrap_err();
            assert_eq!(error.fault().unwrap().kind, FaultKind::Deadline);
            brief.reset().unwrap();
        }
    });
    assert!(!domain.is_poisoned());
}

#[test]
fn the_allocator_and_system_calls_do_not_notice() {
    let domain = domain();
    let attachment = domain.upcall("on").unwrap().attach().unwrap();
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    let writer = std::thread::spawn(move || {
        for byte in 0..200u8 {
            std::thread::sleep(Duration::from_micros(300));
            assert_eq!(
                unsafe { libc::write(ends[1], (&raw const byte).cast(), 1) },
                1
            );
        }
    });
    let mut read = 0u8;
    while_flooded(&attachment, 1000, |round| {
        let all: Vec<String> = (0..64).map(|i| format!("{}", round + i)).collect();
        assert_eq!(all[63], format!("{}", round + 63));
        unsafe {
            *libc::__errno_location() = 0;
            assert_eq!(libc::close(-1), -1);
            for _ in 0..1000 {
                assert_eq!(*libc::__errno_location(), libc::EBADF);
            }
            if read < 200 {
                // Interrupted while it waits, and begun again.
                let mut byte = 0u8;
                assert_eq!(libc::read(ends[0], (&raw mut byte).cast(), 1), 1);
                assert_eq!(byte, read);
                read += 1;
            }
        }
    });
    while read < 200 {
        let mut byte = 0u8;
        assert_eq!(unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) }, 1);
        read += 1;
    }
    writer.join().unwrap();
}

/// A wish that comes while the call waits for an upcall is not lost.
#[test]
fn interrupts_of_the_interrupted_call() {
    let (domain, victim) = (domain(), victim());
    let attachment = domain.upcall("sum").unwrap().attach().unwrap();
    let spin = victim.func::<fn()>("spin").unwrap();
    for round in 0..20 {
        let (sender, other) = (attachment.sender(), victim.clone());
        let calls = victim.counters().calls;
        let thread = std::thread::spawn(move || {
            while other.counters().calls == calls {
                std::hint::spin_loop();
            }
            sender.send(1, 1);
            std::thread::sleep(Duration::from_micros(500 * round));
            other.interrupt();
        });
        let error = spin.call().unwrap_err();
        assert_eq!(error.fault().unwrap().kind, FaultKind::Interrupted);
        thread.join().unwrap();
    }
    assert!(attachment.counters().delivered > 10, "{attachment:?}");
}

/// Upcalls, and faults of upcalls, while the host's own handler is on the signal stack.
#[test]
fn on_the_signal_stack() {
    succeeds_in_child("interrupted::on_the_signal_stack", || {
        static DONE: AtomicU32 = AtomicU32::new(0);
        extern "C" fn busy(_: i32) {
            let mut words: [u64; 512] = std::array::from_fn(|i| i as u64);
            for round in 0..200 {
                std::hint::black_box(&mut words);
                assert!(
                    words.iter().enumerate().all(|(i, &w)| w == i as u64),
                    "{round}"
                );
            }
            DONE.fetch_add(1, SeqCst);
        }
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = busy as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
        }
        let domain = domain();
        let victim = victim();
        let add = victim.func::<fn(i32, i32) -> i32>("add").unwrap();
        let attachment = domain.upcall("on").unwrap().attach().unwrap();
        while_flooded(&attachment, 1000, |_| {
            unsafe { libc::raise(libc::SIGUSR1) };
            assert_eq!(add.call(1, 2).unwrap(), 3);
        });
        drop(attachment);
        let attachment = domain.upcall("traps").unwrap().attach().unwrap();
        let flood = Flood::of(attachment.sender());
        let mut ended = 0;
        while ended < 300 {
            unsafe { libc::raise(libc::SIGUSR1) };
            assert_eq!(add.call(1, 2).unwrap(), 3);
            if let Some(error) = attachment.take_fault() {
                assert_eq!(error.fault().unwrap().kind, FaultKind::Trap);
                ended += 1;
                domain.reset().unwrap();
            }
        }
        drop(flood);
    });
}
