//! Programs that print the same under an agent, and what they take of processors, with whoever sees
//! their calls: a build of generated sources by make and gcc, SQLite and Lua on scripts, a shell's
//! small programs. How long they take by the clock is mostly what else the machine does.

use super::under::Under;
use crate::serve::{children_time, here};
use postern_figures::Measured;
use postern_figures::figure::{Figure, Goal};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

/// Runs of each, in turns, of which the best counts, behind one that warms up.
const TURNS: usize = 3;
/// Source files of the build, and functions in each.
const FILES: usize = 8;
const FUNCTIONS: usize = 16;
/// A program takes at most so many times its own time with an agent.
const GOAL: f64 = 1.1;

/// The programs: a figure's name, what must be there, what a shell runs in the folder, whose output
/// is compared.
const PROGRAMS: [(&str, &str, &str); 4] = [
    ("build", "gcc", "make -s -B -j2 && ./all"),
    ("sqlite", "sqlite3", "rm -f base; sqlite3 base < script.sql"),
    ("lua", "lua5.4", "lua5.4 script.lua"),
    (
        "shell",
        "tar",
        "for i in 1 2 3 4; do tar cf - /usr/include/linux | sha256sum; done; find /usr/share/doc | wc -l",
    ),
];
/// Who sees the calls. The first is the baseline.
const WAYS: [(&str, Under, &str); 5] = [
    ("native", Under::Nobody, "alone"),
    ("count", Under::COUNT, "under `count`"),
    (
        "slow",
        Under::SLOW,
        "under `count`, each call by a signal (`--slow`)",
    ),
    (
        "enforce",
        Under::ENFORCE,
        "under `count` in a supervisor (`--enforce`)",
    ),
    ("strace", Under::Strace, "under `strace -f -o /dev/null`"),
];

const SQL: &str = "\
create table words(id integer primary key, word text, size int);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into words select i, printf('%x-%d', i * 7919, i % 97), i * 31 % 1009 from n;
create index by_size on words(size, word);
select count(*), sum(size), min(word), max(word) from words where size between 100 and 500;
select size % 10, count(*), total(length(word)) from words group by 1 order by 1;
update words set word = upper(word) where id % 3 = 0;
delete from words where id % 7 = 0;
select a.id, b.id from words a join words b on b.size = a.size and b.id = a.id + 1009 order by 1 limit 5;
vacuum;
pragma integrity_check;
";

const LUA: &str = "\
local words, count = {}, {}
local file = assert(io.tmpfile())
for i = 1, 120000 do file:write(('%x'):format(i * 7919), i % 5 == 0 and '\\n' or ' ') end
file:seek('set')
for line in file:lines() do
  for word in line:gmatch('%w+') do
    words[#words + 1] = word
    local key = word:sub(1, 2)
    count[key] = (count[key] or 0) + #word:gsub('[aeiou]', '')
  end
end
table.sort(words)
local keys = {}
for key in pairs(count) do keys[#keys + 1] = key end
table.sort(keys)
for _, key in ipairs(keys) do print(key, count[key]) end
print(#words, words[1], words[#words], #table.concat(words))
";

fn write_sources(folder: &Path) -> std::io::Result<()> {
    let mut makefile = "all:".to_owned();
    let mut main = "#include <stdio.h>\n".to_owned();
    let mut sum = String::new();
    for file in 0..FILES {
        let mut text = "#include <stdio.h>\n#include <string.h>\n#include <stdlib.h>\n".to_owned();
        let _ = writeln!(text, "unsigned part{file}(unsigned x)\n{{ unsigned y = x;");
        let mut calls = String::new();
        let mut functions = String::new();
        for function in 0..FUNCTIONS {
            let (a, b) = (function % 13 + 1, function * 7 % 31 + 3);
            let _ = writeln!(
                functions,
                "static unsigned f{function}(unsigned x, unsigned y)\n{{ char text[32]; \
                 for (unsigned i = 0; i < (x & 7); i++) {{ y = y * {b} + (x >> {a}); \
                 if (y & {b}) x ^= y; }} snprintf(text, sizeof text, \"%u\", x ^ y); \
                 return y + strlen(text) * {a}; }}"
            );
            let _ = writeln!(calls, "y = f{function}(y, x + {function});");
        }
        let (head, body) = text.split_once("unsigned part").unwrap_or_default();
        let text = format!("{head}{functions}unsigned part{body}{calls}return y; }}\n");
        std::fs::write(folder.join(format!("part{file}.c")), text)?;
        let _ = write!(makefile, " part{file}.o");
        let _ = writeln!(main, "unsigned part{file}(unsigned);");
        let _ = write!(sum, " + part{file}({file})");
    }
    let _ = writeln!(
        main,
        "int main(void) {{ printf(\"%u\\n\", 0u{sum}); return 0; }}"
    );
    std::fs::write(folder.join("main.c"), main)?;
    makefile.push_str(" main.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -O1 -Wall -c -o $@ $<\n");
    std::fs::write(folder.join("Makefile"), makefile)?;
    std::fs::write(folder.join("script.sql"), SQL)?;
    std::fs::write(folder.join("script.lua"), LUA)
}

/// The figures.
pub fn figures(folder: &Path, agent: &Path) -> Measured {
    write_sources(folder).map_err(|error| error.to_string())?;
    let mut figures = Vec::new();
    for (program, needed, script) in PROGRAMS {
        if !here(needed) {
            eprintln!("interposed.{program}.* is left out: {needed} is not installed");
            continue;
        }
        let ways: Vec<_> = WAYS
            .into_iter()
            .filter(|(_, under, _)| *under != Under::Strace || here("strace"))
            .collect();
        let mut best = vec![(f64::INFINITY, f64::INFINITY); ways.len()];
        let mut wanted: Option<Vec<u8>> = None;
        let output = folder.join("output");
        let script = format!("cd \"$0\" && {{ {script}; }} > output 2>&1 < /dev/null");
        let words = [
            OsStr::new("sh"),
            "-c".as_ref(),
            script.as_ref(),
            folder.as_ref(),
        ];
        for turn in 0..=TURNS {
            for ((name, under, _), best) in ways.iter().zip(&mut best) {
                let (begun, before) = (Instant::now(), children_time()?);
                let well = under.run(agent, &words)?;
                // The first turn warms up.
                if turn > 0 {
                    let (busy, clock) = (children_time()? - before, begun.elapsed());
                    *best = (best.0.min(busy), best.1.min(clock.as_secs_f64()));
                }
                let printed = std::fs::read(&output).map_err(|error| error.to_string())?;
                let same = *wanted.get_or_insert_with(|| printed.clone()) == printed;
                if !well || !same {
                    let printed = String::from_utf8_lossy(&printed).into_owned();
                    return Err(format!("{program} does something else, {name}: {printed}"));
                }
            }
        }
        for ((name, under, what), (busy, clock)) in ways.iter().zip(&best) {
            let how = format!(
                "time of processors {what}, with the same output, over alone; {:.0} ms by the clock",
                clock * 1e3
            );
            let name = format!("interposed.{program}.{name}");
            let figure = Figure::plain(name, busy * 1e3, "ms", how).against(best[0].0 * 1e3);
            figures.push(match *under {
                Under::COUNT => figure.goal(Goal::RatioAtMost(GOAL)),
                _ => figure,
            });
        }
    }
    Ok(figures)
}
