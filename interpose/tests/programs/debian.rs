//! Programs of Debian's.

use crate::support::{native, under};

/// None of these writes what time it is, or who it is.
pub const PROGRAMS: &[&str] = &[
    "true",
    "echo hello",
    "ls /",
    "cat /etc/passwd",
    "head -c 100000 /etc/services",
    "tail -3 /etc/services",
    "wc /etc/services",
    "sort -r /etc/services",
    "uniq -c /etc/passwd",
    "cut -d: -f1 /etc/passwd",
    "tr a b",
    "sha256sum /etc/services",
    "md5sum /etc/passwd",
    "base64 /etc/passwd",
    "od -c /etc/hostname",
    "seq 100",
    "expr 6 * 7",
    "basename /a/b.c .c",
    "dirname /a/b",
    "readlink -f /proc/self/exe",
    "python3 -c print(__import__('os').readlink('/proc/self/exe'))",
    "find /etc/apt",
    "grep -c tcp /etc/services",
    "grep -rn root /etc/pam.d",
    "sed s/root/toor/ /etc/passwd",
    "awk -F: {print$3} /etc/passwd",
    "tar cf - /etc/apt",
    "gzip -c /etc/services",
    "diff /etc/passwd /etc/group",
    "cmp /etc/passwd /etc/group",
    "dd if=/dev/zero bs=1k count=100 status=none",
    "nproc",
    "uname -a",
    "id",
    "env -i A=b env",
    "printf %s-%s a b",
    "test -d /etc",
    "perl -e print+join(',',map{$_*$_}1..50)",
    "gcc -dumpmachine",
    "ld --version",
    "make --version",
    "timeout 0.2 sleep 5",
    "xargs -a /etc/hostname -n1 echo",
    "nice -n 3 nice",
    "setsid echo session",
    "bash -c (exit_()(exit$1);exit_3)",
];

/// Trees of processes.
pub const SCRIPTS: &[&str] = &[
    "echo a | cat | wc -c; (exit 3); echo $?; x=$(ls / | sort); echo $x",
    "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done; echo done",
    "sleep 5 & kill %1; wait; echo ended",
    "trap 'echo term' TERM; kill $$; echo after",
    "kill -9 $$",
    "kill -SEGV $$",
    "ulimit -n 64; ls / | wc -l",
    "exec 5>&1; echo five >&5; exec 5>&-; ls /etc/apt",
    "cd /; pwd; cd /etc; exec pwd",
    "f() { echo $1; [ $1 -gt 0 ] && (f $(($1 - 1))); }; f 8",
];

#[test]
fn thirty_and_more_do_the_same() {
    let mut differ = Vec::new();
    for program in PROGRAMS {
        let words: Vec<&str> = program.split(' ').collect();
        let alone = native(&words);
        let (seen, _) = under("count", &[], &words);
        if alone != seen {
            differ.push(format!("{program}\n  alone {alone:?}\n  under {seen:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn trees_of_processes() {
    for script in SCRIPTS {
        let words = ["bash", "-c", script];
        assert_eq!(native(&words), under("count", &[], &words).0, "{script}");
    }
}

#[test]
fn thirty_and_more_and_their_trees_do_the_same_while_they_are_traced() {
    let mut differ = Vec::new();
    let programs = PROGRAMS.iter().map(|program| program.split(' ').collect());
    let scripts = SCRIPTS.iter().map(|script| vec!["bash", "-c", *script]);
    for words in programs.chain(scripts) {
        let words: Vec<&str> = words;
        let alone = native(&words);
        let (seen, said) = under("trace", &["-f"], &words);
        if alone != seen {
            differ.push(format!("{words:?}\n  alone {alone:?}\n  under {seen:?}"));
        }
        // Nothing but whole lines, each of a call that has ended or of a thread that ends. Who is
        // killed may leave a part of one.
        let kills = matches!(words[0], "bash" | "timeout");
        let wrong = said.lines().find(|line| {
            let (thread, rest) = line.split_once(' ').unwrap_or_default();
            let is_whole =
                rest.contains(" = ") || rest.trim_start().starts_with("+++ exited with ");
            thread.parse::<u32>().is_err() || !is_whole
        });
        if said.is_empty() || (wrong.is_some() && !kills) {
            differ.push(format!("{words:?}\n  traced {wrong:?}"));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

#[test]
fn scripts_and_their_interpreters() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, mode).expect("a file");
        path.to_str().expect("a path").to_owned()
    };
    let inner = write("inner", "#!/bin/sh -e\necho inner $0 $1 $2\n");
    let outer = write("outer", &format!("#!{inner} word\n"));
    let none = write("none", "#!/nonesuch\n");
    let text = write("text", "echo text\n");
    for words in [[inner.as_str(), "x"], [outer.as_str(), "x"]] {
        assert_eq!(native(&words), under("count", &[], &words).0, "{words:?}");
    }
    for path in [none, text] {
        let words = ["bash", "-c", "\"$0\"; echo $?", &path];
        assert_eq!(native(&words), under("count", &[], &words).0, "{path}");
    }
}

#[test]
fn make_and_gcc_build_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path().to_str().expect("a path");
    std::fs::write(
        folder.path().join("Makefile"),
        "all: a b\n\t./a; ./b\n%: %.c\n\tgcc -O1 -o $@ $<\n",
    )
    .expect("a file");
    for name in ["a", "b"] {
        let text =
            format!("#include <stdio.h>\nint main(void) {{ puts(\"{name}\"); return 0; }}\n");
        std::fs::write(folder.path().join(name).with_extension("c"), text).expect("a file");
    }
    let words = ["make", "-s", "-C", at, "-j2", "-B"];
    let alone = native(&words);
    assert_eq!((alone.status, alone.output.as_str()), (Some(0), "a\nb\n"));
    assert_eq!(alone, under("count", &[], &words).0);
}
