//! The command while it captures.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A command that ends with the test.
pub struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts the command, and waits for the first line on its standard error.
pub fn started(arguments: &[&str]) -> (Running, BufReader<std::process::ChildStderr>, String) {
    // Under nohup SIGHUP would be ignored, by the command too.
    let mut child = Command::new("env")
        .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_postern")])
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    (Running(child), errors, line)
}

/// Starts the command, and waits until it listens.
pub fn listening(arguments: &[&str]) -> (Running, BufReader<std::process::ChildStderr>) {
    let (running, errors, line) = started(arguments);
    assert!(line.contains("listening on"), "{line}");
    (running, errors)
}

/// Ends the command as a user does, and gives its exit code and what it said.
pub fn interrupt(
    mut running: Running,
    mut errors: BufReader<std::process::ChildStderr>,
) -> (i32, String, String) {
    let pid = running.0.id().to_string();
    let killed = Command::new("kill").args(["-INT", &pid]).status().unwrap();
    assert!(killed.success());
    let (mut out, mut text) = (String::new(), String::new());
    running
        .0
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .unwrap();
    errors.read_to_string(&mut text).unwrap();
    (running.0.wait().unwrap().code().unwrap(), out, text)
}
