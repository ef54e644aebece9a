//! Common memory by a name: who has it, who gets it, and what strangers may answer.

use crate::support;
use crate::*;

/// A broker for new memory, which serves until it is dropped.
struct Serving {
    path: PathBuf,
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<Broker>>,
    _directory: support::Directory,
}

impl Serving {
    fn begin() -> Serving {
        let directory = support::Directory::new();
        let path = directory.path("state");
        let memory = CommonMemory::new(&image()).unwrap();
        let broker = Broker::begin(&path, &memory, Admission::default()).unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let serve = move || {
            while let Some(visit) = broker.serve_one(stopped.as_fd()).unwrap() {
                assert!(visit.admitted);
            }
            broker
        };
        Serving {
            path,
            stop: Some(stop),
            thread: Some(std::thread::spawn(serve)),
            _directory: directory,
        }
    }

    fn end(&mut self) -> Broker {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap()
    }
}

fn shared(path: &Path) -> Result<Domain, InstantiateError> {
    let builder = Domain::shared_at(path, &image())?;
    let builder = builder.service("s", |_: &postern::Caller<'_>| 7);
    let builder = builder.grant_to_all("s");
    builder.deadline(None).build()
}

fn refused(path: &Path) -> CommonError {
    match shared(path) {
        Err(InstantiateError::Common(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_broker_hands_it_out_and_who_has_it_goes_on_without() {
    const PATH: &str = "POSTERN_TEST_SOCKET";
    let test = "brokers::a_broker_hands_it_out_and_who_has_it_goes_on_without";
    if let Some(path) = std::env::var_os(PATH) {
        let domain = shared(path.as_ref()).unwrap();
        put(&domain, 2);
        until("the last value", || get(&domain) == 3);
        put(&domain, 4);
        std::process::exit(0);
    }
    let mut serving = Serving::begin();
    let domain = shared(&serving.path).unwrap();
    put(&domain, 1);
    assert_eq!(get(&shared(&serving.path).unwrap()), 1);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(PATH, &serving.path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the other's value", || get(&domain) == 2);
    // Of one path there is one.
    let memory = CommonMemory::new(&image()).unwrap();
    let again = Broker::begin(&serving.path, &memory, Admission::default());
    assert!(matches!(again, Err(CommonError::Shared(_))), "{again:?}");
    let broker = serving.end();
    assert!(broker.path().exists());
    drop(broker);
    assert!(!serving.path.exists());
    let error = refused(&serving.path);
    assert!(matches!(error, CommonError::NoBroker(_)), "{error}");
    put(&domain, 3);
    until("it goes on", || get(&domain) == 4);
    assert!(child.wait().unwrap().success());
    // What a broker leaves that was killed is no hindrance.
    drop(std::os::unix::net::UnixListener::bind(&serving.path).unwrap());
    let error = refused(&serving.path);
    assert!(
        matches!(error, CommonError::NoBroker(_) | CommonError::System { .. }),
        "{error}"
    );
    drop(Broker::begin(&serving.path, &memory, Admission::default()).unwrap());
}

#[test]
fn who_is_admitted() {
    let own = unsafe { libc::geteuid() };
    let narrow = Admission::default();
    assert!(narrow.admits(own, 77) && narrow.admits(0, 77) && !narrow.admits(own + 1, 77));
    let wide = Admission {
        users: vec![own + 1],
        groups: vec![5],
        ..Admission::default()
    };
    assert!(wide.admits(own + 1, 77) && wide.admits(own + 2, 5) && !wide.admits(own + 2, 77));
    let all = Admission {
        all: true,
        ..Admission::default()
    };
    assert!(all.admits(own + 2, 77));
}

#[test]
fn names_of_shared_domains() {
    for name in ["counter", "a-b_c.1", &"x".repeat(64)] {
        assert!(
            postern::socket_of(name)
                .unwrap()
                .ends_with(format!("postern/{name}"))
        );
    }
    for name in [
        "",
        ".",
        "..",
        ".x",
        "a/b",
        "../x",
        "a b",
        "a\0",
        "ä",
        &"x".repeat(65),
    ] {
        assert!(
            matches!(postern::socket_of(name), Err(CommonError::Name(_))),
            "{name}"
        );
    }
}

/// Whatever a stranger sends, it is an error, and nothing of it stays.
#[test]
fn what_is_no_broker_is_told_so() {
    support::succeeds_in_child("brokers::what_is_no_broker_is_told_so", strangers);
}

fn strangers() {
    use std::mem::{size_of, zeroed};
    let directory = support::Directory::new();
    let path = directory.path("stranger");
    let memory = CommonMemory::new(&image()).unwrap();
    let good = memory.descriptor().as_raw_fd();
    let other = std::fs::File::open(std::env::current_exe().unwrap()).unwrap();
    let other = other.as_raw_fd();
    let given: &[u8] = b"postern-common-1";
    let cases: [(&[u8], &[i32]); 9] = [
        (b"", &[]),
        (b"postern-common-0", &[]),
        (b"postern-common-0", &[good]),
        (given, &[]),
        (given, &[other]),
        (given, &[good, good]),
        (given, &[good; 9]),
        (b"postern-common-2", &[good]),
        (&[b'x'; 500], &[]),
    ];
    let descriptors = support::descriptors();
    for (text, rights) in cases {
        let stranger = unsafe {
            let fd = libc::socket(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0);
            let mut address: libc::sockaddr_un = zeroed();
            address.sun_family = libc::AF_UNIX as u16;
            let name = path.as_os_str().as_encoded_bytes();
            for (to, &from) in address.sun_path.iter_mut().zip(name) {
                *to = from as libc::c_char;
            }
            let size = size_of::<libc::sockaddr_un>() as u32;
            let _ = std::fs::remove_file(&path);
            assert_eq!(libc::bind(fd, (&raw const address).cast(), size), 0);
            assert_eq!(libc::listen(fd, 1), 0);
            OwnedFd::from_raw_fd(fd)
        };
        std::thread::scope(|scope| {
            scope.spawn(|| unsafe {
                let client = libc::accept4(
                    stranger.as_raw_fd(),
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    libc::SOCK_CLOEXEC,
                );
                let client = OwnedFd::from_raw_fd(client);
                let mut control = [0u64; 32];
                let mut part = libc::iovec {
                    iov_base: text.as_ptr().cast_mut().cast(),
                    iov_len: text.len(),
                };
                let mut message: libc::msghdr = zeroed();
                message.msg_iov = &raw mut part;
                message.msg_iovlen = 1;
                if !rights.is_empty() {
                    let bytes = size_of_val(rights) as u32;
                    message.msg_control = control.as_mut_ptr().cast();
                    message.msg_controllen = libc::CMSG_SPACE(bytes) as usize;
                    let head = libc::CMSG_FIRSTHDR(&message);
                    (*head).cmsg_level = libc::SOL_SOCKET;
                    (*head).cmsg_type = libc::SCM_RIGHTS;
                    (*head).cmsg_len = libc::CMSG_LEN(bytes) as usize;
                    libc::CMSG_DATA(head)
                        .copy_from_nonoverlapping(rights.as_ptr().cast(), size_of_val(rights));
                }
                if !text.is_empty() {
                    assert!(libc::sendmsg(client.as_raw_fd(), &message, 0) > 0);
                }
            });
            let error = refused(&path);
            let shown = format!(
                "{} bytes, {} descriptors: {error}",
                text.len(),
                rights.len()
            );
            println!("{shown}");
        });
    }
    assert_eq!(support::descriptors(), descriptors);
}
