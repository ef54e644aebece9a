//! Sockets of brokers, and who comes to them.

use super::support::{Directory, descriptors, succeeds_in_child};
use super::{image, until};
use postern::{Admission, Broker, CommonError, CommonMemory};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

fn begin(path: &Path) -> Result<Broker, CommonError> {
    let memory = CommonMemory::new(&image()).unwrap();
    Broker::begin(path, &memory, Admission::default())
}

/// A broker takes the place of a socket that another has left, and of nothing else.
#[test]
fn a_broker_removes_no_file_of_anybody() {
    let directory = Directory::new();
    let (path, target) = (directory.path("state"), directory.path("target"));
    std::fs::write(&path, "precious").unwrap();
    let error = begin(&path).unwrap_err();
    assert!(error.to_string().contains("no socket"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(&target, &path).unwrap();
    assert!(begin(&path).is_err());
    assert!(std::fs::symlink_metadata(&path).unwrap().is_symlink());
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(begin(&path).is_err());
    std::fs::remove_dir(&path).unwrap();
    // Nor does it follow a link, or wait for who reads a pipe, where its lock is to lie.
    let lock = directory.path("state.lock");
    std::fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&target, &lock).unwrap();
    assert!(begin(&path).is_err() && !target.exists());
    std::fs::remove_file(&lock).unwrap();
    let name = std::ffi::CString::new(lock.as_os_str().as_encoded_bytes()).unwrap();
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    assert!(begin(&path).is_err());
    std::fs::remove_file(&lock).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    drop(begin(&path).unwrap());
}

/// Clients that say something, pass descriptors, say nothing, or come in numbers: each is answered,
/// and the next, too; and who comes to a broker that has stopped does not wait for good.
#[test]
fn clients_of_all_kinds_and_a_broker_that_has_stopped() {
    let test = "brokers::clients_of_all_kinds_and_a_broker_that_has_stopped";
    succeeds_in_child(test, clients);
}

/// A socket that is connected there, or not where that would have to wait.
fn connect(path: &Path) -> Option<OwnedFd> {
    unsafe {
        let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        let socket = OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, kind, 0));
        let mut address: libc::sockaddr_un = std::mem::zeroed();
        address.sun_family = libc::AF_UNIX as u16;
        let name = path.as_os_str().as_encoded_bytes();
        for (to, &from) in address.sun_path.iter_mut().zip(name) {
            *to = from as libc::c_char;
        }
        let size = size_of::<libc::sockaddr_un>() as u32;
        let done = libc::connect(socket.as_raw_fd(), (&raw const address).cast(), size);
        (done == 0).then_some(socket)
    }
}

fn clients() {
    let directory = Directory::new();
    let path = directory.path("state");
    let broker = begin(&path).unwrap();
    let (stop, stopped) = std::os::unix::net::UnixStream::pair().unwrap();
    let before = descriptors();
    std::thread::scope(|scope| {
        let serve = scope.spawn(|| {
            let mut visits = 0;
            while broker.serve_one(stopped.as_fd()).unwrap().is_some() {
                visits += 1;
            }
            visits
        });
        let mut idle = Vec::new();
        for round in 0..300 {
            let Some(client) = connect(&path) else {
                std::thread::sleep(Duration::from_micros(100));
                continue;
            };
            if round % 3 == 0 {
                let rights = [0i32; 1];
                unsafe {
                    let mut control = [0u64; 8];
                    let mut part: libc::iovec = std::mem::zeroed();
                    let garbage = [round as u8; 100];
                    part.iov_base = garbage.as_ptr().cast_mut().cast();
                    part.iov_len = garbage.len();
                    let mut message: libc::msghdr = std::mem::zeroed();
                    (message.msg_iov, message.msg_iovlen) = (&raw mut part, 1);
                    message.msg_control = control.as_mut_ptr().cast();
                    message.msg_controllen = libc::CMSG_SPACE(4) as usize;
                    let head = libc::CMSG_FIRSTHDR(&message);
                    (*head).cmsg_level = libc::SOL_SOCKET;
                    (*head).cmsg_type = libc::SCM_RIGHTS;
                    (*head).cmsg_len = libc::CMSG_LEN(4) as usize;
                    libc::CMSG_DATA(head).copy_from_nonoverlapping(rights.as_ptr().cast(), 4);
                    libc::sendmsg(client.as_raw_fd(), &message, libc::MSG_NOSIGNAL);
                }
            }
            if round % 3 == 1 {
                idle.push(client);
            }
        }
        assert!(CommonMemory::from_broker(&path).is_ok());
        drop(idle);
        drop(stop);
        assert!(serve.join().unwrap() > 100);
    });
    assert!(descriptors() < before);
    // It does not serve any more, and as many wait as can.
    let waiting: Vec<_> = (0..1000).map_while(|_| connect(&path)).collect();
    assert!(waiting.len() < 1000);
    let came = std::thread::spawn(move || CommonMemory::from_broker(&path).map(drop));
    until("who came late is told", || came.is_finished());
    let error = came.join().unwrap().unwrap_err();
    assert!(matches!(error, CommonError::NoBroker(_)), "{error}");
}
