//! A server of NFS for tests: Debian's nfs-ganesha, in namespaces that the test makes. Nothing
//! of it is seen outside, and it ends with the test. The folder is one of memory, so that it
//! does not matter which file system the host has.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const INSIDE: &str = "POSTERN_TEST_GANESHA";

/// Everything that a server wants to have for itself: the loopback, its sockets' and its state's
/// folders, a port mapper.
const SETUP: &str = "ip link set lo up
mount -t tmpfs none /run
mount -t tmpfs none /var/lib/nfs
mkdir /run/ganesha /var/lib/nfs/ganesha";

/// Runs `body`, the test of this name in this program, where a server can be started. Where the
/// system has no server or does not allow namespaces, the test says so and passes.
pub fn inside(test: &str, body: impl FnOnce(&Server)) {
    if let Some(folder) = std::env::var_os(INSIDE) {
        let made = Command::new("sh").args(["-ec", SETUP]).status();
        assert!(
            made.expect("a shell").success(),
            "the namespaces are set up"
        );
        let server = Server::new(Path::new(&folder)).expect("a server starts");
        return body(&server);
    }
    for program in ["ganesha.nfsd", "rpcbind", "ip"] {
        if !is_there(program) {
            let remedy = "`make setup-exos-nfs` installs it on Debian";
            return println!("SKIPPED {test}: no {program}; {remedy}");
        }
    }
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["-n", "-m", "-p", "-f", "--kill-child", "--mount-proc"]);
        command
    };
    let tried = unshare().arg("true").output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return println!("SKIPPED {test}: namespaces are root's to make here");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let status = unshare()
        .arg(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, folder.path())
        .status();
    assert!(
        status.expect("it is started").success(),
        "{test} inside namespaces"
    );
}

fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::env::split_paths(&paths).chain(["/usr/sbin".into(), "/sbin".into()]);
    paths.into_iter().any(|path| path.join(program).is_file())
}

/// A server that runs, and its port mapper.
pub struct Server {
    folder: PathBuf,
    mapper: Child,
}

/// A process of the server's, which ends when it is dropped.
pub struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It has no state that an orderly end would save.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    fn new(folder: &Path) -> io::Result<Server> {
        let export = folder.join("export");
        let squashed = folder.join("squashed");
        for folder in [&export, &squashed] {
            std::fs::create_dir_all(folder)?;
            let mounted = Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=64m", "none"])
                .arg(folder)
                .status()?;
            if !mounted.success() {
                return Err(io::Error::other("no file system of memory"));
            }
        }
        let configuration = format!(
            "NFS_CORE_PARAM {{
    Protocols = 3;
    Plugins_Dir = {PLUGINS};
    Enable_NLM = false;
    Enable_RQUOTA = false;
    Enable_UDP = true;
}}
EXPORT {{
    Export_Id = 1;
    Path = {export};
    Pseudo = /export;
    Access_Type = RW;
    Squash = No_Root_Squash;
    SecType = sys;
    Protocols = 3;
    Transports = UDP, TCP;
    PrivilegedPort = false;
    Attr_Expiration_Time = 0;
    FSAL {{ Name = VFS; }}
}}
EXPORT {{
    Export_Id = 2;
    Path = {squashed};
    Pseudo = /squashed;
    Access_Type = RO;
    Squash = All_Squash;
    SecType = sys;
    Protocols = 3;
    Transports = UDP, TCP;
    PrivilegedPort = false;
    Attr_Expiration_Time = 0;
    FSAL {{ Name = VFS; }}
}}
LOG {{ Default_Log_Level = WARN; }}
",
            export = export.display(),
            squashed = squashed.display()
        );
        std::fs::write(folder.join("ganesha.conf"), configuration)?;
        let mapper = quiet(Command::new("rpcbind").arg("-f")).spawn()?;
        Ok(Server {
            folder: folder.to_owned(),
            mapper,
        })
    }

    /// The folder that it exports, here and as clients name it.
    pub fn export(&self) -> PathBuf {
        self.folder.join("export")
    }

    /// Another one, which clients only read, as nobody.
    pub fn squashed(&self) -> PathBuf {
        self.folder.join("squashed")
    }

    /// Starts the server; it is there when this returns.
    pub fn start(&self) -> io::Result<Running> {
        let child = quiet(
            Command::new("ganesha.nfsd")
                .arg("-F")
                .arg("-L")
                .arg(self.folder.join("log"))
                .arg("-f")
                .arg(self.folder.join("ganesha.conf"))
                .arg("-p")
                .arg(self.folder.join("pid")),
        )
        .spawn()?;
        let running = Running(child);
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let exports = Command::new("showmount")
                .args(["--no-headers", "-e", "127.0.0.1"])
                .output()?;
            if exports.status.success() && !exports.stdout.is_empty() {
                return Ok(running);
            }
            thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(io::Error::other(format!("it does not answer:\n{log}")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.mapper.kill();
        let _ = self.mapper.wait();
    }
}

/// Where Debian has its file systems.
const PLUGINS: &str = "\"/usr/lib/x86_64-linux-gnu/ganesha\"";

fn quiet(command: &mut Command) -> &mut Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
}
