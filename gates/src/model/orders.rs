//! What must hold in every order in which the model's threads see each other's stores.

use super::*;

/// Another thread of the model, which calls twice.
fn called_twice(caller: &Arc<Thread>, domain: &Arc<Domain>) -> thread::JoinHandle<()> {
    let (caller, domain) = (caller.clone(), domain.clone());
    thread::spawn(move || {
        for _ in 0..2 {
            assert!(caller.call(&domain).is_ok());
        }
    })
}

#[test]
fn nobody_enters_after_close_has_seen_nobody() {
    model(3, || {
        let (caller, domain) = (Thread::new(), Domain::open(1));
        let calls = called_twice(&caller, &domain);
        domain.lifecycle.close();
        barrier();
        while caller.is_inside(&domain) {
            thread::yield_now();
        }
        // Its memory goes.
        domain.write_window();
        calls.join().unwrap();
        assert_eq!(domain.lifecycle.now(), Phase::Closed);
        assert_eq!(caller.call(&domain), Ok(false));
    });
}

#[test]
fn a_reset_overlaps_no_call() {
    model(3, || {
        let (caller, domain) = (Thread::new(), Domain::open(1));
        let calls = called_twice(&caller, &domain);
        reset(&domain, &caller);
        calls.join().unwrap();
        assert_eq!(domain.lifecycle.now(), Phase::Open);
        assert!(reset(&domain, &caller) && caller.call(&domain) == Ok(true));
    });
}

#[test]
fn a_reset_without_a_barrier_overlaps_no_first_call() {
    model(4, || {
        let (caller, domain) = (Thread::new(), Domain::open(1));
        let calls = {
            let (caller, domain) = (caller.clone(), domain.clone());
            thread::spawn(move || {
                // As `slow::decide`: the state, a data stack, and the gate again.
                if domain.lifecycle.now() != Phase::Open {
                    return;
                }
                domain.stacks_given.fetch_add(1, SeqCst); // Control::give_data_stack
                fence(SeqCst);
                for _ in 0..2 {
                    caller.call_state.begin_entering();
                    caller.control.store(domain.number, Release);
                    caller.call_state.publish_without_fence();
                    if domain.lifecycle.now() == Phase::Open {
                        domain.use_window();
                    }
                    caller.leave();
                }
            })
        };
        reset_without_barrier(&domain);
        calls.join().unwrap();
        assert_eq!(domain.lifecycle.now(), Phase::Open);
        reset(&domain, &caller);
    });
}

#[test]
fn of_two_resets_and_a_close_each_has_the_domain_for_itself() {
    model(2, || {
        let (caller, domain) = (Thread::new(), Domain::open(1));
        let other = {
            let (caller, domain) = (caller.clone(), domain.clone());
            thread::spawn(move || {
                reset(&domain, &caller);
            })
        };
        let closer = {
            let domain = domain.clone();
            thread::spawn(move || {
                domain.lifecycle.poison();
                domain.lifecycle.close();
            })
        };
        reset(&domain, &caller);
        other.join().unwrap();
        closer.join().unwrap();
        // Whatever ended last: closed is for good.
        assert_eq!(domain.lifecycle.now(), Phase::Closed);
    });
}

#[test]
fn a_move_overlaps_neither_a_reset_nor_a_call() {
    model(2, || {
        let (caller, domain) = (Thread::new(), Domain::open(1));
        let calls = {
            let (caller, domain) = (caller.clone(), domain.clone());
            thread::spawn(move || assert!(caller.call(&domain).is_ok()))
        };
        let other = {
            let (caller, domain) = (caller.clone(), domain.clone());
            thread::spawn(move || {
                // As `Session::hold_back`.
                domain.lifecycle.want_move();
                move_window(&domain, &caller);
            })
        };
        reset(&domain, &caller);
        calls.join().unwrap();
        other.join().unwrap();
        assert!(domain.lifecycle.now().admits());
    });
}

#[test]
fn a_call_that_waits_is_inside_all_the_time() {
    model(3, || {
        let (caller, outer, inner) = (Thread::new(), Domain::open(1), Domain::open(2));
        let call = {
            let (caller, outer, inner) = (caller.clone(), outer.clone(), inner.clone());
            thread::spawn(move || nested(&caller, &outer, &inner))
        };
        reset(&outer, &caller);
        call.join().unwrap();
    });
}

#[test]
fn number_and_domain_are_read_of_one_call() {
    model(5, || {
        let (caller, outer, inner) = (Thread::new(), Domain::open(1), Domain::open(2));
        let call = {
            let (caller, outer, inner) = (caller.clone(), outer.clone(), inner.clone());
            thread::spawn(move || {
                nested(&caller, &outer, &inner);
                assert_eq!(caller.call(&inner), Ok(true));
            })
        };
        let read = one_call(|word| caller.word(word));
        let known = [(1, 1), (NESTED + 1, 2), (2, 2)];
        assert!(read.is_none_or(|call| known.contains(&call)), "{read:x?}");
        call.join().unwrap();
    });
}

/// A call in `outer` that is interrupted by upcalls into `inner`: before it, while it enters, and
/// inside.
fn interrupted(caller: &Thread, outer: &Domain, inner: &Domain) {
    caller.upcall(inner);
    caller.call_state.begin_entering();
    caller.sequence.store(1, Release);
    caller.upcall(inner);
    caller.control.store(outer.number, Release);
    caller.call_state.publish();
    if outer.lifecycle.now() == Phase::Open {
        outer.use_window();
        caller.upcall(inner);
        outer.use_window();
    }
    caller.leave();
}

#[test]
fn number_and_domain_are_read_of_one_call_or_upcall() {
    model(3, || {
        let (caller, outer, inner) = (Thread::new(), Domain::open(1), Domain::open(2));
        let call = {
            let (caller, outer, inner) = (caller.clone(), outer.clone(), inner.clone());
            thread::spawn(move || interrupted(&caller, &outer, &inner))
        };
        let read = one_call(|word| caller.word(word));
        let upcall = |n| (NESTED | UPCALL | n, 2);
        let known = [(1, 1), upcall(1), upcall(3), upcall(5)];
        assert!(read.is_none_or(|call| known.contains(&call)), "{read:x?}");
        call.join().unwrap();
    });
}

#[test]
fn a_reset_overlaps_neither_an_upcall_nor_the_call_that_waits_for_it() {
    for inner_is_reset in [false, true] {
        model(2, move || {
            let (caller, outer, inner) = (Thread::new(), Domain::open(1), Domain::open(2));
            let call = {
                let (caller, outer, inner) = (caller.clone(), outer.clone(), inner.clone());
                thread::spawn(move || interrupted(&caller, &outer, &inner))
            };
            reset(if inner_is_reset { &inner } else { &outer }, &caller);
            call.join().unwrap();
        });
    }
}

#[test]
fn a_wish_for_a_call_that_waits_for_an_upcall_is_not_lost() {
    model(2, || {
        let (caller, outer, inner) = (Thread::new(), Domain::open(1), Domain::open(2));
        assert_eq!(caller.enter(&outer), Ok(true));
        let asks = {
            let (caller, outer) = (caller.clone(), outer.clone());
            thread::spawn(move || caller.end_inside(&outer))
        };
        let mut ended = Vec::new();
        // The upcall's own signal interrupts a call that has not ended.
        if caller.point(true).map_err(|e| ended.push(e)).is_ok() {
            assert!(caller.upcall(&inner));
            ended.extend(caller.point(true).err());
        }
        asks.join().unwrap();
        if ended.is_empty() {
            // Every signal is taken at last.
            ended.extend(caller.point(true).err());
        }
        assert_eq!(ended, [Ended(1)]);
    });
}

#[test]
fn an_abort_ends_the_call_that_was_meant() {
    model(4, || {
        let (caller, domain) = (Thread::new(), Domain::open(1));
        let calls = {
            let (caller, domain) = (caller.clone(), domain.clone());
            thread::spawn(move || {
                let ended = [caller.call(&domain), caller.call(&domain)];
                ended
                    .into_iter()
                    .filter_map(Result::err)
                    .collect::<Vec<_>>()
            })
        };
        let asked = one_call(|word| caller.word(word)).map(|(sequence, _)| sequence);
        asked.into_iter().for_each(|sequence| caller.ask(sequence));
        let ended = calls.join().unwrap();
        assert!(ended.len() <= 1);
        assert!(ended.iter().all(|&Ended(sequence)| asked == Some(sequence)));
    });
}

#[test]
fn a_wish_for_a_call_that_waits_is_not_lost_and_ends_no_other() {
    model(2, || {
        let (caller, outer, inner) = (Thread::new(), Domain::open(1), Domain::open(2));
        assert_eq!(caller.enter(&outer), Ok(true));
        let asks = {
            let (caller, outer) = (caller.clone(), outer.clone());
            thread::spawn(move || caller.end_inside(&outer))
        };
        let mut ended = Vec::new();
        let mut went = |result: Result<(), Ended>| ended.extend(result.err());
        if let Err(early) = caller.point(true) {
            went(Err(early));
        } else {
            let sequence = caller.begin_nested(&outer);
            went(caller.point(false));
            assert!(caller.enter_nested(&inner));
            went(caller.point(true));
            assert_eq!(ended, [], "the peer is not meant");
            ended.extend(caller.end_nested(&outer, sequence).err());
        }
        asks.join().unwrap();
        if ended.is_empty() {
            // Every signal is taken at last.
            ended.extend(caller.point(true).err());
        }
        assert_eq!(ended, [Ended(1)]);
    });
}

#[test]
fn a_thread_that_ends_is_forgotten() {
    struct Memory(Thread, UnsafeCell<()>);
    model(3, || {
        let domain = Domain::open(1);
        let thread = Arc::new(Memory(Thread::outside(), UnsafeCell::new(())));
        let registry = Arc::new(Mutex::new(vec![Some(thread.clone())]));
        let ends = {
            let (domain, registry) = (domain.clone(), registry.clone());
            thread::spawn(move || {
                assert!(thread.0.call(&domain).is_ok());
                // As `register::unregister`.
                registry.lock().unwrap()[0] = None;
                thread.0.call_state.forget();
                // libc frees it.
                thread.1.with_mut(|_| ());
            })
        };
        domain.lifecycle.close();
        barrier();
        loop {
            let registry = registry.lock().unwrap();
            let inside = registry[0].as_ref().is_some_and(|thread| {
                thread.1.with(|_| ());
                thread.0.is_inside(&domain)
            });
            if !inside {
                break;
            }
            drop(registry);
            thread::yield_now();
        }
        domain.write_window();
        ends.join().unwrap();
    });
}
