//! A server that lies, mounted inside ExOS: tools end with errors or with nonsense, nothing hangs,
//! and the shell lives.

use postern_aegis_machine::emulator;

use crate::{guest, liar};

/// What is done again and again: everything that a server is asked for.
const ROUND: &str = "ls -l $m
cat $m/f $m/d/f2 | wc -c
echo words > $m/d2/f
echo more >> $m/f3
cp $m/f /tmp/f
cp /bin/script $m/f4
mkdir $m/x
mv $m/f $m/d/x1
ln -s somewhere $m/x2
cat $m/l
cat $m/l/f
stat $m/f
rm $m/f5
touch $m/f
cd $m/d && pwd
cd /
find $m/d3 | head -n 20
";

#[test]
fn a_server_that_lies_hurts_nobody() {
    lies(1);
}

#[test]
fn nor_on_two_processors() {
    lies(2);
}

fn lies(processors: u32) {
    if !emulator::is_there() {
        return println!("SKIPPED: no qemu-system-x86_64; `make setup-exos` installs it");
    }
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let (datagrams, stream) = (liar::datagrams(seed), liar::stream(seed ^ 1));
    let mut script = String::new();
    for (liar, protocol) in [(&datagrams, "udp"), (&stream, "tcp")] {
        let port = liar.port;
        let options = format!("{protocol},port={port},mountport={port},timeo=2,retrans=2");
        script += &format!("nfs -o {options} 10.0.2.2:/export /{protocol} && echo mounted\n");
    }
    script += &format!("for n in 1 2 3; do for m in /udp /tcp; do\n{ROUND}done; done\n");
    script += "echo 1 > /tmp/own && cat /tmp/own && echo survived\nexit\n";
    let ended = guest::run(&script, &[], processors, |_, _| {});
    assert!(ended.status.is_well(), "{}", ended.status);
    let has = |text: &str| ended.lines.iter().filter(|line| *line == text).count();
    assert_eq!(has("mounted"), 2);
    assert_eq!(has("survived"), 1, "{:#?}", ended.lines);
}
