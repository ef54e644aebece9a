//! The network stack: programs under it and the kernel's own stack talk over a veth pair, in
//! namespaces of the test's own.
//!
//! It is left out, and says so, where there is no right to make namespaces. LLVM 23 is fetched if
//! it is not there.

use crate::support::folder;
use postern_interpose::Interposer;
use postern_toolchain::{Build, Language, llvm};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The variable by which the test that is started in namespaces is told its part.
const PART: &str = "POSTERN_NETSTACK_TEST";

/// The agent.
fn stack() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build)
}

fn build() -> PathBuf {
    llvm::install().unwrap_or_else(|error| panic!("{error}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("netstack");
    let bitcode = folder().join("netstack.bc");
    let mut emit = std::ffi::OsString::from("--emit=llvm-bc=");
    emit.push(&bitcode);
    let mut compile = Command::new(env!("CARGO"));
    compile
        .args(["rustc", "--release", "--locked", "--quiet", "--lib"])
        .args(["--crate-type", "staticlib", "--"])
        .arg(emit)
        .current_dir(source);
    for of_this_build in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_TARGET_DIR"] {
        compile.env_remove(of_this_build);
    }
    assert!(compile.status().expect("cargo can be started").success());
    let path = folder().join("netstack.px");
    Build::new(Language::C)
        .file(&bitcode)
        .flags(["-O2", "-fpostern-heap=1G"])
        .output(&path)
        .run()
        .expect("the stack is built");
    path
}

/// What the shell of the namespaces does before: an interface for the stack, whose other end the
/// kernel of a second namespace has.
const NETWORK: &str = "set -e
unshare -n sleep 1000 & other=$!
trap 'kill $other' EXIT
until [ \"$(readlink /proc/$other/ns/net)\" != \"$(readlink /proc/self/ns/net)\" ]; do :; done
ip link add stack type veth peer name kernel netns $other
ip link set stack up; ip link set lo up
peer() { nsenter -n -t $other \"$@\"; }
peer ip addr add 10.77.0.1/24 dev kernel
peer ip link set kernel up; peer ip link set lo up
export TEST=\"$1\" PART=\"$2\"
under() { POSTERN_NETSTACK_TEST=\"$(printf '%s\\n' \"$@\")\" \"$TEST\" --exact netstack::part --ignored --nocapture; }
";

/// Runs a script in namespaces, with `peer` before what the kernel's side runs and `under` before
/// what runs under the stack: what it printed. `None` where that is not possible.
fn between(script: &str) -> Option<String> {
    let agent = stack();
    let tools = ["ip", "nsenter", "unshare", "python3"].iter().all(|tool| {
        let found = Command::new("sh")
            .args(["-c", "command -v \"$0\"", tool])
            .stdout(Stdio::null())
            .status();
        found.is_ok_and(|status| status.success())
    });
    let possible = Command::new("unshare")
        .args(["-n", "--", "ip", "link", "add", "one", "type", "veth"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !tools || !possible {
        return None;
    }
    let output = Command::new("unshare")
        .args(["-n", "--", "sh", "-c"])
        .arg(format!("{NETWORK}{script}"))
        .arg("sh")
        .arg(std::env::current_exe().expect("the test's path"))
        .env("AGENT", agent)
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    let (said, wrong) = (output.stdout, output.stderr);
    let wrong = String::from_utf8_lossy(&wrong);
    assert!(output.status.success(), "{wrong}");
    Some(String::from_utf8_lossy(&said).into_owned())
}

/// Lines of a script's output that are its own, not the test's harness'.
fn lines(said: &str) -> Vec<&str> {
    let own = said.lines().filter_map(|line| line.split_once(": "));
    own.filter(|(who, _)| *who == "it")
        .map(|(_, line)| line)
        .collect()
}

/// The part that runs under the stack: the words of a program; `MORE` has arguments of the stack.
#[test]
#[ignore = "the tests below start it"]
fn part() {
    let words = std::env::var(PART).expect("who starts it says what to run");
    let words: Vec<&str> = words.lines().collect();
    let agent = std::env::var_os("AGENT").expect("and the agent");
    let interposer = Interposer::new(agent)
        .argument("--interface")
        .argument("stack")
        .argument("--address")
        .argument("10.77.0.2/24");
    let more = std::env::var("MORE").unwrap_or_default();
    let interposer = more.lines().fold(interposer, Interposer::argument);
    let status = interposer.run(OsStr::new(words[0]), &words[1..]);
    println!("it: {:?}", status.expect("the program is run").code());
}

/// Programs for the tests.
fn program(name: &str, text: &str) -> String {
    let path = folder().join(name);
    std::fs::write(&path, text).expect("a file");
    path.to_str().expect("a path").to_owned()
}

/// Servers of the kernel's side: TCP, which echoes until the end and says how much that was; UDP.
const PEER: &str = "import socket, threading
t = socket.create_server(('10.77.0.1', 7000)); u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(('10.77.0.1', 7001))
def one(c):
    n = 0
    while d := c.recv(65536): n += len(d); c.sendall(d)
    c.close()
def streams():
    while True: threading.Thread(target=one, args=[t.accept()[0]], daemon=True).start()
threading.Thread(target=streams, daemon=True).start()
print('ready', flush=True)
while True:
    d, a = u.recvfrom(2000); u.sendto(b'again ' + d, a)
";

const CLIENT: &str = "import socket, select, os, threading
s = socket.create_connection(('10.77.0.1', 7000), timeout=20)
data = os.urandom(3000000); got = bytearray()
t = threading.Thread(target=lambda: (s.sendall(data), s.shutdown(socket.SHUT_WR))); t.start()
while d := s.recv(50000): got += d
t.join(); print('it: stream', bytes(got) == data, s.getpeername(), s.getsockname()[0])
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(20)
u.sendto(b'one', ('10.77.0.1', 7001)); print('it: datagram', *u.recvfrom(100))
u.settimeout(0.1)
try: u.recv(1)
except TimeoutError: print('it: time is over')
n = socket.socket(); n.setblocking(False)
print('it: in progress', n.connect_ex(('10.77.0.1', 7000)) == 115)
e = select.epoll(); e.register(n, select.EPOLLOUT); r, w = os.pipe(); e.register(r, select.EPOLLIN)
print('it: epoll', [f == n.fileno() for f, _ in e.poll(20)], n.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR))
n.send(b'x'); e.modify(n, select.EPOLLIN); os.write(w, b'y')
seen = set()
while len(seen) < 2: seen.update(f for f, _ in e.poll(20))
print('it: both', seen == {n.fileno(), r}, n.recv(10))
print('it: select', select.select([n], [n], [], 0.05)[1] == [n])
if os.fork() == 0:
    n.send(b'child'); os._exit(0)
os.wait(); n.setblocking(True); print('it: child', n.recv(10))
c = socket.socket()
try: c.connect(('10.77.0.1', 7009))
except ConnectionRefusedError: print('it: refused')
l = socket.create_server(('127.0.0.1', 0)); k = socket.create_connection(l.getsockname()); print('it: loopback')
for wrong in [('10.77.0.9', 80)]:
    try: socket.socket().bind(wrong)
    except OSError as e: print('it: bind', e.errno)
";

#[test]
fn clients_of_streams_and_datagrams() {
    let (peer, client) = (program("peer.py", PEER), program("client.py", CLIENT));
    let script = format!(
        "nsenter -n -t $other python3 {peer} > ready & server=$!
        until [ -s ready ]; do sleep 0.05; done
        under python3 {client}
        kill $server; wait $server || true"
    );
    let Some(said) = between(&format!("cd {}\n{script}", folder().display())) else {
        return eprintln!("left out: no LLVM 23, or no right to make namespaces");
    };
    let wanted = [
        "stream True ('10.77.0.1', 7000) 10.77.0.2",
        "datagram b'again one' ('10.77.0.1', 7001)",
        "time is over",
        "in progress True",
        "epoll [True] 0",
        "both True b'x'",
        "select True",
        "child b'child'",
        "refused",
        "loopback",
        "bind 99",
        "Some(0)",
    ];
    assert_eq!(lines(&said), wanted, "{said}");
}

const SERVER: &str = "import socket, os
s = socket.create_server(('', 80), backlog=64)
for _ in range(3):
    if os.fork() == 0:
        while True:
            c, a = s.accept(); d = c.recv(5)
            if d == b'leave': os._exit(0)
            c.sendall(b'z' * int(d)); c.close()
for _ in range(3): os.wait()
print('it: all left')
";

const CLIENTS: &str = "import socket, threading
def ask(words):
    for _ in range(400):
        try: s = socket.create_connection(('10.77.0.2', 80), timeout=20); break
        except OSError: threading.Event().wait(0.05)
    s.sendall(words); n = 0
    while d := s.recv(65536): n += len(d)
    return n
ask(b'00001')
all = []
threads = [threading.Thread(target=lambda k=k: all.append(ask(b'%05d' % (k * 900)) == k * 900)) for k in range(40)]
for t in threads: t.start()
for t in threads: t.join()
print('it: clients', len(all), set(all))
for _ in range(3): ask(b'leave')
";

#[test]
fn servers_that_fork() {
    let (server, clients) = (program("server.py", SERVER), program("clients.py", CLIENTS));
    let script = format!("peer python3 {clients} & asks=$!\nunder python3 {server}\nwait $asks");
    let Some(said) = between(&script) else {
        return;
    };
    let mut lines = lines(&said);
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["Some(0)", "all left", "clients 40 {True}"],
        "{said}"
    );
}

/// Children that always are about to be in the stack, and are killed one after the other.
const KILLER: &str = "import os, random, socket, time
for _ in range(25):
    child = os.fork()
    if child == 0:
        try:
            s = socket.socket(); s.connect(('10.77.0.1', 7000))
            while True: s.sendall(b'x' * 20000); s.recv(5000)
        except OSError as error: os._exit(error.errno)
    time.sleep(random.random() * 0.03); os.kill(child, 9)
    status = os.waitpid(child, 0)[1]
    if os.WIFEXITED(status): break
try:
    s = socket.create_connection(('10.77.0.1', 7000), timeout=20); s.sendall(b'end'); print('it:', s.recv(3))
except OSError as error: print('it:', error.errno)
";

#[test]
fn children_that_are_killed() {
    const LOST: &str = "netstack: a process was killed inside the stack: its sockets are lost";
    let (peer, killer) = (program("echo.py", PEER), program("killer.py", KILLER));
    let script = format!(
        "cd {}; nsenter -n -t $other python3 {peer} > echoes 2> /dev/null & server=$!
        until [ -s echoes ]; do sleep 0.05; done
        under python3 {killer} 2>&1
        kill $server; wait $server || true",
        folder().display()
    );
    let Some(said) = between(&script) else {
        return;
    };
    // Either none was killed inside, or it is said, and all find their network down.
    let wanted = match said.contains(LOST) {
        true => "100",
        false => "b'end'",
    };
    assert_eq!(lines(&said), [wanted, "Some(0)"], "{said}");
}

/// A network behind the gateway: two servers that echo.
const AFAR: &str = "import socket, threading
def serve(port):
    s = socket.create_server(('10.88.0.1', port))
    if port == 7000: print('ready', flush=True)
    while True: c = s.accept()[0]; c.sendall(c.recv(100)); c.close()
threading.Thread(target=serve, args=[7002], daemon=True).start(); serve(7000)
";

const NEAR: &str = "import socket
s = socket.create_connection(('10.88.0.1', 7000), timeout=20); s.sendall(b'far'); print('it:', s.recv(9))
try: socket.create_connection(('10.88.0.1', 7002), timeout=1)
except TimeoutError: print('it: nothing comes')
";

#[test]
fn gateways_and_filters() {
    let (afar, near) = (program("afar.py", AFAR), program("near.py", NEAR));
    let script = format!(
        "cd {}; peer ip addr add 10.88.0.1/32 dev lo
        nsenter -n -t $other python3 {afar} > afar & server=$!
        until [ -s afar ]; do sleep 0.05; done
        export MORE=$(printf '%s\\n' --gateway 10.77.0.1 --filter 'tcp src port 7000')
        under python3 {near}
        kill $server; wait $server || true",
        folder().display()
    );
    let Some(said) = between(&script) else {
        return;
    };
    assert_eq!(
        lines(&said),
        ["b'far'", "nothing comes", "Some(0)"],
        "{said}"
    );
}

#[test]
fn what_is_wrong_is_one_sentence() {
    let agent = stack();
    for (words, wanted) in [
        (
            "--interface lo --address 10.77.0.2/24",
            "lo is no Ethernet interface",
        ),
        (
            "--interface none --address 10.77.0.2/24",
            "none: there is no such interface",
        ),
        (
            "--interface lo",
            "it wants --interface NAME --address ADDRESS/BITS",
        ),
        (
            "--interface lo --address 10.77.0.2/24 --filter tpc",
            "--filter at 0: `tpc` stands where a condition should; did you mean `tcp`?",
        ),
    ] {
        let file = folder().join("said");
        let said = File::create(&file).expect("a file");
        let script = format!("exec 2> {}; exec \"$@\"", file.display());
        drop(said);
        let told = words.split(' ').map(str::to_owned);
        let status = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(std::env::current_exe().expect("the test's path"))
            .args(["--exact", "netstack::refused", "--ignored"])
            .env("AGENT", agent)
            .env(PART, told.collect::<Vec<_>>().join("\n"))
            .stdout(Stdio::null())
            .status();
        assert!(status.expect("a shell").success());
        let mut said = String::new();
        let mut file = File::open(&file).expect("a file");
        file.read_to_string(&mut said).expect("a file");
        assert!(said.starts_with("postern: the agent: netstack: "), "{said}");
        assert!(said.contains(wanted), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}

/// The part of the test above that runs under the stack.
#[test]
#[ignore = "the test above starts it"]
fn refused() {
    let words = std::env::var(PART).expect("who starts it says what is told");
    let agent = std::env::var_os("AGENT").expect("and the agent");
    let interposer = words
        .lines()
        .fold(Interposer::new(agent), Interposer::argument);
    let status = interposer.run(OsStr::new("true"), [""; 0]);
    assert_eq!(status.expect("the loader is run").code(), Some(125));
}
