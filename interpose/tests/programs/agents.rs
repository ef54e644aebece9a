//! What agents see and do.

use crate::support::{path_in, under, under_into};
use std::path::Path;

/// How often the table of `count` says that a call was made.
fn count(said: &str, name: &str) -> u64 {
    let row = said
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some(name));
    let number = row.and_then(|row| row.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

#[test]
fn one_state_for_a_tree() {
    let script = "for i in 1 2 3 4 5; do /bin/true; done; mkdir \"$0\"; rmdir \"$0\"; :";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made");
    let words = ["bash", "-c", script, path.to_str().expect("a path")];
    let (seen, said) = under("count", &[], &words);
    assert_eq!(seen.status, Some(0));
    // bash itself, five of `true`, mkdir, rmdir; shells try the folders of $PATH.
    assert!(count(&said, "execve") >= 8, "{said}");
    assert_eq!(
        (count(&said, "mkdir"), count(&said, "rmdir")),
        (1, 1),
        "{said}"
    );
    assert_eq!(count(&said, "exit_group"), 8, "{said}");
}

#[test]
fn calls_by_program() {
    let script = "/bin/true; /bin/true; mkdir \"$0\"; rmdir \"$0\"; :";
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("made");
    let words = ["bash", "-c", script, path.to_str().expect("a path")];
    let (_, said) = under("count", &["--folded"], &words);
    let count = |line: &str| {
        let found = said.lines().find_map(|all| all.strip_prefix(line));
        found.and_then(|count| count.trim().parse().ok())
    };
    assert_eq!(count("true;exit_group "), Some(2), "{said}");
    assert_eq!(count("mkdir;mkdir "), Some(1), "{said}");
    assert_eq!(count("rmdir;rmdir "), Some(1), "{said}");
    assert_eq!(count("bash;exit_group "), Some(1), "{said}");
}

#[test]
fn what_is_denied_is_not_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("kept");
    std::fs::write(&path, "here").expect("a file");
    let kept = path.to_str().expect("a path");
    let (seen, said) = under("deny", &["unlink", "unlinkat=EACCES"], &["rm", kept]);
    assert_eq!(seen.status, Some(1));
    assert!(Path::new(kept).exists());
    assert!(said.starts_with("deny: refused unlinkat of "), "{said}");
    let (seen, said) = under(
        "deny",
        &["unlink"],
        &["perl", "-e", "exit(unlink($ARGV[0]) ? 0 : $!+0)", kept],
    );
    assert_eq!((seen.status, said.lines().count()), (Some(1), 2), "{said}");
    let (seen, _) = under("deny", &["mkdir"], &["rm", kept]);
    assert_eq!(seen.status, Some(0));
    assert!(!path.exists());
}

#[test]
fn calls_fail_by_rule() {
    let perl = |script: &str, told: &[&str]| under("fault", told, &["/usr/bin/perl", "-e", script]);
    let script = "for (1..8) { print syscall(124, 0) < 0 ? 0 + $! : 0, ' ' }";
    for (when, results) in [
        ("3", "0 0 5 0 0 0 0 0 "),
        ("3+", "0 0 5 5 5 5 5 5 "),
        ("2+3", "0 5 0 0 5 0 0 5 "),
        ("2..4", "0 5 5 5 0 0 0 0 "),
        ("2..6+2", "0 5 0 5 0 5 0 0 "),
    ] {
        let rule = format!("inject=getsid:error=EIO:when={when}");
        let (seen, said) = perl(script, &["-e", &rule]);
        assert_eq!((seen.status, seen.output.as_str()), (Some(0), results));
        assert_eq!(said.lines().count(), results.matches('5').count(), "{said}");
        let all =
            |line: &str| line.starts_with("fault: getsid by process ") && line.ends_with(": EIO");
        assert!(said.lines().all(all), "{said}");
    }
    let (seen, _) = perl("print syscall(124, 0)", &["-e", "inject=getsid:retval=77"]);
    assert_eq!(seen.output, "77");
    let script = "$SIG{USR1} = sub { print 'came ' }; syscall(124, 0); print 'after'";
    let (seen, _) = perl(script, &["-e", "inject=getsid:signal=SIGUSR1"]);
    assert_eq!(seen.output, "came after");
    for (told, wrong) in [
        (
            ["-e", "inject=nonesuch:error=EIO"],
            "no such call or class: nonesuch",
        ),
        (["-e", "inject=read:error=ENONE"], "no such error: ENONE"),
        (
            ["-e", "inject=read:when=0"],
            "not FIRST[..LAST][+[STEP]]: 0",
        ),
        (["-e", "read"], "no rule (inject=SET:error=NAME): read"),
        (["--what", "read"], "no such option: --what"),
    ] {
        let (seen, said) = perl("", &told);
        assert_eq!(
            (seen.status, said),
            (Some(125), format!("fault: {wrong}\n"))
        );
    }
}

#[test]
fn programs_say_what_failed() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| path_in(&folder, name);
    std::fs::write(at("a"), vec![b'x'; 300_000]).expect("a file");
    let (a, b) = (at("a"), at("b"));
    // A full disk while a file is copied, by whichever call cp copies.
    let rule = "inject=write,copy_file_range:error=ENOSPC";
    let (seen, _) = under("fault", &["-e", rule, "-q"], &["cp", &a, &b]);
    assert_eq!(seen.status, Some(1));
    // sh cannot make a child.
    let rule = "inject=clone,fork,vfork,clone3:error=EAGAIN";
    let (seen, said) = under("fault", &["-e", rule], &["sh", "-c", "/bin/true; echo $?"]);
    assert_eq!((seen.status, said.is_empty()), (Some(2), false), "{said}");
}

#[test]
fn the_same_seed_has_the_same_faults() {
    let script =
        "for (1..500) { syscall(124, 0); open(F, '<', '/etc/hostname') or print \"$_ \"; }";
    let run = |seed: &str| {
        let told = ["--random", "0.1", "--seed", seed, "--of", "openat", "-q"];
        under("fault", &told, &["/usr/bin/perl", "-e", script]).0
    };
    // A seed with which perl begins at all.
    let good = (1..50).map(|seed| seed.to_string());
    let good: Vec<String> = good
        .filter(|seed| run(seed).status == Some(0))
        .take(2)
        .collect();
    let outputs: Vec<String> = good.iter().map(|seed| run(seed).output).collect();
    assert_eq!(outputs[0], run(&good[0]).output);
    assert_ne!(outputs[0], outputs[1]);
    let failed = outputs[0].split_whitespace().count();
    assert!((20..90).contains(&failed), "{failed}");
}

#[test]
fn other_files_in_a_programs_place() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| path_in(&folder, name);
    std::fs::create_dir_all(at("real/below")).expect("a folder");
    std::fs::write(at("real/below/file"), "below\n").expect("a file");
    std::fs::write(at("hosts"), "1.2.3.4 elsewhere\n").expect("a file");
    let (prefix, hosts) = (
        format!("/nonesuch/={}", at("real")),
        format!("/etc/hosts={}", at("hosts")),
    );
    let told = [
        prefix.as_str(),
        hosts.as_str(),
        "/usr/bin/true=/usr/bin/echo",
    ];
    let same = |words: &[&str], output: &str| {
        let (seen, said) = under("remap", &told, words);
        assert_eq!(
            (seen.status, seen.output.as_str()),
            (Some(0), output),
            "{words:?} {said}"
        );
    };
    same(
        &["cat", "/etc/hosts", "/etc/../etc//./hosts"],
        "1.2.3.4 elsewhere\n1.2.3.4 elsewhere\n",
    );
    same(
        &["ls", "/nonesuch", "/nonesuch/below/"],
        "/nonesuch:\nbelow\n\n/nonesuch/below/:\nfile\n",
    );
    // Relative to where it is, with a folder's descriptor, and by a program that is executed.
    same(
        &[
            "sh",
            "-c",
            "cd /etc && cat hosts && cd /nonesuch/below && cat file",
        ],
        "1.2.3.4 elsewhere\nbelow\n",
    );
    let script = "import os\nf = os.open('/etc', os.O_RDONLY)\n\
                  print(os.read(os.open('hosts', os.O_RDONLY, dir_fd=f), 7).decode(), os.path.exists('/nonesuch/x'))";
    same(&["python3", "-c", script], "1.2.3.4 False\n");
    same(&["/usr/bin/true", "hello"], "hello\n");
    let script = "cd /nonesuch; echo new > made; mv made moved; ln -s moved link; cat link; mkdir f; rmdir f; \
                  rm link moved; ls; [ -x /etc/hosts ] || stat -c %s /etc/hosts";
    same(&["sh", "-c", script], "new\nbelow\n18\n");
    let (_, said) = under("remap", &["-v", &hosts], &["cat", "/etc/hosts"]);
    assert_eq!(
        said,
        format!("remap: openat: /etc/hosts is {}\n", at("hosts"))
    );
}

#[test]
fn rules_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| path_in(&folder, name);
    std::fs::write(at("secret"), "secret").expect("a file");
    std::fs::write(at("open"), "open ").expect("a file");
    let under_rules = |text: &str, words: &[&str]| {
        std::fs::write(at("rules.toml"), text).expect("a file");
        under("deny", &[&at("rules.toml")], words)
    };
    let (secret, open, made) = (at("secret"), at("open"), at("made"));
    let rules = format!(
        "# Nothing here is secret.\ndefault = \"allow\"\nerror = \"EACCES\"\n\n[[rule]]\n\
         paths = [ # two\n  '{secret}', \"/nonesuch/**\",\n]\nverdict = \"deny\"\nerror = \"ENOENT\"\n\
         [[rule]]\npaths = ['{}/*']\naccess = \"write\"\nverdict = \"deny\"\n",
        folder.path().display()
    );
    let script = "cat \"$0\" \"$1\"; echo x > \"$2\" || echo no";
    let words = ["bash", "-c", script, &open, &secret, &made];
    let (seen, said) = under_rules(&rules, &words);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "open no\n"),
        "{said}"
    );
    assert!(
        said.contains(&format!("deny: refused openat of {secret} by process ")),
        "{said}"
    );
    assert!(
        said.contains(&format!("deny: refused openat of {made} by process ")),
        "{said}"
    );
    assert!(said.ends_with("deny: rule 1, which denies, fitted 1 times\ndeny: rule 2, which denies, fitted 1 times\n"), "{said}");
    // Only said.
    let (seen, said) = under_rules(&format!("enforce = false\n{rules}"), &words);
    assert_eq!(seen.output, "open secret");
    assert!(said.contains("deny: would refuse openat of "), "{said}");
    // Nothing but what is named.
    let temporary = std::env::temp_dir();
    let named = |more: &str| {
        format!(
            "default = 'deny'\n[[rule]]\nverdict = 'allow'\npaths = ['/usr/**', '/lib*/**', \
             '/etc/ld.so.*', '/dev/null', '{}/*'{more}]\n",
            temporary.display()
        )
    };
    let cat = ["/usr/bin/cat", &open];
    let (seen, said) = under_rules(&named(""), &cat);
    assert_eq!((seen.status, seen.output.as_str()), (Some(1), ""), "{said}");
    let (seen, said) = under_rules(&named(", '/**/open'"), &cat);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "open "),
        "{said}"
    );
    // Networks.
    let networks = "[[rule]]\nnetworks = ['127.0.0.0/8:9', 'unix:/nonesuch/*']\nverdict = 'deny'\nerror = 'ENETDOWN'\n";
    let script = "use Socket; socket(S, AF_INET, SOCK_STREAM, 0); for (9, 1) { \
                  connect(S, sockaddr_in($_, inet_aton('127.0.0.1'))); print 0 + $!, ' ' } \
                  socket(U, AF_UNIX, SOCK_STREAM, 0); connect(U, sockaddr_un('/nonesuch/a')); print 0 + $!";
    let (seen, _) = under_rules(networks, &["/usr/bin/perl", "-e", script]);
    assert_eq!(seen.output, "100 111 100");
    for (text, wrong) in [
        ("a", "1: = is wanted behind a"),
        (
            "\ndefault = 'perhaps'",
            "2: \"allow\" or \"deny\" is wanted, not perhaps",
        ),
        (
            "[[rule]]\ncalls = ['nonesuch']",
            "2: no such call or class: nonesuch",
        ),
        ("[[rule]]\npaths = ['a']", "2: a path begins with /: a"),
        ("[[rule]] x", "1: something stands behind it"),
        ("default = \"allow", "1: a string does not end"),
        (
            "calls = ['read']",
            "1: in front of the rules there is no calls",
        ),
        (
            "[[rule]]\nverdict = 'deny'\ncolour = 'red'",
            "3: a rule has no colour",
        ),
    ] {
        let (seen, said) = under_rules(text, &["true"]);
        let wrong = format!("deny: {}:{wrong}\n", at("rules.toml"));
        assert_eq!((seen.status, said), (Some(125), wrong));
    }
}

#[test]
fn a_program_is_told_the_same_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| path_in(&folder, name);
    let (log, input, made) = (at("log"), at("input"), at("made"));
    // Its name is among what is recorded.
    let output = folder.path().join("output");
    let run = |agent: &str, told: &[&str], words: &[&str]| under_into(&output, agent, told, words);
    std::fs::write(&input, "one\n").expect("a file");
    let script = "import os, sys, time, random\n\
                  print(time.time_ns(), time.monotonic_ns(), os.getpid(), random.random(), os.urandom(4))\n\
                  print(open(sys.argv[1]).read(), os.stat(sys.argv[1]).st_mtime_ns)\n\
                  time.sleep(0.01)\n\
                  open(sys.argv[2], 'w').write('made')";
    let words = ["/usr/bin/python3", "-c", script, &input, &made];
    let (first, said) = run("record", &[&log], &words);
    assert_eq!((first.status, said.as_str()), (Some(0), ""));
    assert_eq!(std::fs::read_to_string(&made).expect("a file"), "made");
    // The input is another, and then not there; what the program writes goes nowhere.
    std::fs::write(&made, "before").expect("a file");
    for text in [Some("other\n"), None] {
        match text {
            Some(text) => std::fs::write(&input, text).expect("a file"),
            None => std::fs::remove_file(&input).expect("a file"),
        }
        std::fs::write(&output, "").expect("a file");
        let (again, said) = run("replay", &[&log], &words);
        assert_eq!((again, said.as_str()), (first.clone(), ""));
        assert_eq!(std::fs::read_to_string(&made).expect("a file"), "before");
    }
    // Another program, or the same with other words.
    let (seen, said) = under(
        "replay",
        &[&log],
        &["/usr/bin/python3", "-c", script, &made, &made],
    );
    assert_eq!(seen.status, Some(125));
    assert!(said.starts_with("log: call "), "{said}");
    assert!(
        said.contains("openat: it was given something else") || said.contains(": the log has "),
        "{said}"
    );
    let (seen, said) = under("replay", &["/nonesuch"], &["true"]);
    assert_eq!(
        (seen.status, said.as_str()),
        (Some(125), "log: call 0: there is no /nonesuch\n")
    );
}

#[test]
fn an_agent_that_faults_ends_the_program() {
    let (seen, _) = under(
        "faulty",
        &[],
        &["perl", "-e", "$| = 1; print 1; syscall(124, 0); print 2"],
    );
    assert_eq!((seen.status, seen.output.as_str()), (Some(125), "1"));
    // The program's own faults are its own.
    let (seen, _) = under(
        "faulty",
        &[],
        &[
            "perl",
            "-e",
            "$SIG{SEGV} = sub { print 3; exit 4 }; kill SEGV, $$",
        ],
    );
    assert_eq!((seen.status, seen.output.as_str()), (Some(4), "3"));
}

#[test]
fn what_came_of_a_call_is_seen_behind_it() {
    // A child by fork, one that shares the memory until it is another program, and a failed exec.
    let script = "$| = 1; print syscall(124, 0), ' '; exit 3 if !fork; wait; print $? >> 8, ' '; \
                  print system('/bin/true') >> 8; exec '/nonesuch'; print ' back'";
    let (seen, said) = under("seen", &[], &["/usr/bin/perl", "-e", script]);
    assert_eq!(
        (seen.status, seen.output.as_str()),
        (Some(0), "4242 3 0 back")
    );
    assert!(!said.contains("note"), "{said}");
    let of = |process: u32, number: u64| {
        let start = format!("{process} {number} ");
        let all = said.lines().filter_map(|line| line.strip_prefix(&start));
        all.map(|result| result.parse().expect("a number"))
            .collect::<Vec<i64>>()
    };
    assert_eq!(of(0, 124), [4242]);
    assert_eq!(of(0, 59), [-2], "{said}");
    let [wait, ..] = of(0, 61)[..] else {
        panic!("{said}");
    };
    let made = [of(0, 56), of(0, 57), of(0, 58)].concat();
    assert_eq!(made.first(), Some(&wait), "{said}");
    // No child comes back from its own making.
    assert!(!said.lines().any(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        ["56", "57", "58", "435"].contains(&words[1]) && words[2] == "0"
    }));
}

#[test]
fn a_keeper_goes_on_beside_the_tree() {
    // The shell that the tests begin with, this one, and /bin/true: the first tells twice.
    let words = ["sh", "-c", "(/bin/true); exec /bin/true"];
    let (seen, said) = under("kept", &[], &words);
    assert_eq!(seen.status, Some(0));
    assert_eq!(said, "told 5 times\n");
}
