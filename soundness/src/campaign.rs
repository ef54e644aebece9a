//! Batch after batch: makes snippets, runs them, judges them, counts.

use crate::batch::{BATCH, STACK, Shared, guard_end};
use crate::instruction::{Encoder, Origin};
use crate::judge::{Case, End};
use crate::random::Draw;
use crate::runner::{FLOAT, Input, Output, TRACE, X87, XMM, YMM};
use crate::snippet::{self, Snippet};
use crate::window::{DATA, IMPORTS, LAST};
use fastrand::Rng;
use postern_verifier::window::{GATES, INFO, WINDOW_SIZE, text_start};
use postern_verifier::{Facts, Row};
use std::collections::BTreeMap;
use std::fmt;

/// Where windows lie: far from everything, and at zero as the hot window.
const BASES: [u64; 2] = [0x1234_0000_0000, 0];
/// TF and the flag that is always set.
const TRACED: u32 = 0x302;
/// The arithmetic flags.
const ARITHMETIC: u32 = 0x8d5;

/// MXCSR: no exception is a signal.
const MASKED: u64 = 0x1f80;
/// MXCSR: rounding, flush to zero, denormals are zero.
const MODES: u64 = 0xe040;

/// How often a row of the allow list was tried.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowTally {
    /// Executed alone, with single steps.
    pub tried: u64,
    /// Of these: without fault.
    pub completed: u64,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Tally {
    /// Snippets of one instruction.
    pub singles: u64,
    /// Of these, from mutated or random bytes.
    pub from_bytes: u64,
    /// Longer snippets.
    pub sequences: u64,
    /// Instructions whose length and successor were compared, one by one.
    pub stepped: u64,
    /// Snippets that ran to their end (or through all steps asked for).
    pub completed: u64,
    /// Snippets that ended in a fault of the allowed kinds.
    pub faulted: u64,
    /// Snippets that only the timer ended.
    pub endless: u64,
    /// Snippets with an instruction that this processor does not have.
    pub missing: u64,
    /// By row, in the order of the allow list.
    pub rows: Vec<RowTally>,
    /// Promises broken, with an example each.
    pub broken: BTreeMap<String, (u64, String)>,
    /// Missing instructions by their bytes' start.
    pub missing_examples: BTreeMap<String, u64>,
}

/// The whole apparatus.
#[derive(Debug)]
pub struct Campaign {
    encoder: Encoder,
    random: Rng,
    shared: Shared,
    secrets: Vec<u64>,
    /// What was found so far.
    pub tally: Tally,
}

struct Job {
    snippet: Snippet,
    entry: u32,
    traced: bool,
}

impl Campaign {
    /// One batch of instructions on vector registers, of rows that are `float` or that are not,
    /// each with several words in MXCSR. Returns, of each row, how often that showed: in flags that
    /// were raised, or in what came out. Without the fact `float` that is a broken promise.
    pub fn control_words(&mut self, float: bool) -> Vec<u64> {
        const WORDS: [u64; 5] = [MASKED, MASKED | 0x4000, MASKED | 0xa040, MASKED | 0x6000, 0];
        // Where exceptions are signals, floating point would end by one.
        let words = &WORDS[..WORDS.len() - usize::from(float)];
        let base = BASES[0];
        let text_offset = text_start(IMPORTS);
        let forms: Vec<usize> = (self.encoder.rows().iter().enumerate())
            .filter(|(_, row)| row.xmm && row.float == float)
            .flat_map(|(at, row)| {
                let opcodes = usize::from(row.last - row.first) + 1;
                vec![at; opcodes * row.prefixes.count_ones() as usize]
            })
            .collect();
        let mut text: Vec<u8> = Vec::new();
        let (mut jobs, mut inputs) = (Vec::new(), Vec::new());
        for i in 0..BATCH {
            let entry = text_offset + text.len() as u32;
            let row = forms[i % forms.len()];
            let snippet = snippet::of_row(&self.encoder, row, &mut self.random, entry);
            text.extend_from_slice(&snippet.bytes);
            inputs.push(self.input(base, entry, &snippet.facts, false, true));
            jobs.push((row, entry, snippet));
        }
        let mut seen = vec![0; self.encoder.rows().len()];
        let mut first: Vec<Output> = Vec::new();
        for &word in words {
            for input in &mut inputs {
                input.mxcsr = word;
            }
            let outputs = match self.shared.run(base, &text, &inputs) {
                Ok(outputs) => outputs,
                Err(escape) => {
                    let example = format!("{:x?}", jobs[escape.index].2);
                    self.broken(escape.what, example);
                    return seen;
                }
            };
            for (i, (row, entry, snippet)) in jobs.iter().enumerate() {
                let job = Job {
                    snippet: snippet.clone(),
                    entry: *entry,
                    traced: false,
                };
                self.judge(base, &text, text_offset, &job, &inputs[i], &outputs[i]);
                let what = |o: &Output| (o.kind, o.signal, o.trap, o.flags, o.rip, o.digest);
                let other = first.get(i).is_some_and(|f| what(f) != what(&outputs[i]));
                if other && !snippet.facts.float {
                    let example = format!("{:02x?} with MXCSR {word:#x}", snippet.bytes);
                    self.broken("MXCSR matters without the float fact".into(), example);
                }
                seen[*row] += u64::from(other || outputs[i].mxcsr != word);
            }
            if first.is_empty() {
                first = outputs;
            }
        }
        seen
    }

    /// Maps the shared memory.
    ///
    /// # Errors
    /// The machine lacks AVX2 or memory.
    pub fn new(seed: u64) -> std::io::Result<Campaign> {
        let mut random = Rng::with_seed(seed);
        let page = 4096;
        let canaries = [
            BASES[0] - page,
            guard_end(BASES[0]),
            BASES[0] - WINDOW_SIZE,
            guard_end(BASES[1]),
        ];
        let shared = Shared::new(&canaries.map(|c| c as usize), &mut random)?;
        let encoder = Encoder::default();
        let tally = Tally {
            rows: vec![RowTally::default(); encoder.rows().len()],
            ..Tally::default()
        };
        Ok(Campaign {
            secrets: shared.secrets(),
            encoder,
            random,
            shared,
            tally,
        })
    }

    /// One batch: singles, or sequences, in one of the windows.
    pub fn batch(&mut self, singles: bool) {
        let base = BASES[usize::from(self.random.chance(25))];
        let text_offset = text_start(IMPORTS);
        let mut text: Vec<u8> = Vec::new();
        let mut jobs = Vec::with_capacity(BATCH);
        let mut inputs = Vec::with_capacity(BATCH);
        for _ in 0..BATCH {
            let entry = text_offset + text.len() as u32;
            let (encoder, random) = (&self.encoder, &mut self.random);
            let snippet = match singles {
                true => snippet::single(encoder, random, entry),
                false => snippet::sequence(encoder, random, entry),
            };
            text.extend_from_slice(&snippet.bytes);
            // A step costs ten times a breakpoint.
            let traced = random.chance(if singles { 4 } else { 10 });
            jobs.push(Job {
                snippet,
                entry,
                traced,
            });
        }
        let all = match snippet::judge(&text, text_offset) {
            Ok(facts) => facts,
            Err(violation) => {
                let what = "texts that are accepted alone are refused together";
                self.broken(what.into(), violation.to_string());
                return;
            }
        };
        for job in &jobs {
            // An indirect branch may go to the pads of others.
            let facts = match job.snippet.facts.indirect {
                true => all,
                false => job.snippet.facts,
            };
            inputs.push(self.input(base, job.entry, &facts, job.traced, singles));
        }
        match self.shared.run(base, &text, &inputs) {
            Ok(outputs) => {
                for ((job, input), output) in jobs.iter().zip(&inputs).zip(&outputs) {
                    self.judge(base, &text, text_offset, job, input, output);
                }
            }
            Err(escape) => {
                let example = format!(
                    "{:x?} {:x?}",
                    jobs[escape.index].snippet, inputs[escape.index]
                );
                self.broken(escape.what, example);
            }
        }
    }

    fn input(&mut self, base: u64, entry: u32, facts: &Facts, traced: bool, single: bool) -> Input {
        let mut input = Input {
            entry: base + u64::from(entry),
            facts: [
                (facts.xmm, XMM),
                (facts.ymm, YMM),
                (facts.x87, X87),
                (facts.float, FLOAT),
            ]
            .iter()
            .filter(|f| f.0)
            .map(|f| f.1)
            .sum(),
            mxcsr: match facts.float {
                true => MASKED | self.random.u64(..) & MODES,
                // It must not matter, even if every exception would be a signal.
                false => self.random.u64(..) & (MASKED | MODES),
            },
            rflags: (self.random.u32(..) & ARITHMETIC) | if traced { TRACED } else { 0x202 },
            vectors: self.shared.vectors(self.random.u32(..)),
            limit: if single { 1 } else { TRACE as u64 },
            gprs: [0; 16],
        };
        for i in 0..16 {
            input.gprs[i] = self.register(base);
        }
        input
    }

    /// A register's value: usually a good offset, often a hostile one.
    fn register(&mut self, base: u64) -> u64 {
        let random = &mut self.random;
        // Few pages, since each one touched costs a page fault.
        let data = u64::from(DATA + (1 << 20) + random.u32(..1 << 17));
        match random.u32(..20) {
            0..7 => data & !31,
            7 => data,
            8 => data | random.u64(..) << 32,
            9..12 => u64::from(random.u32(..128)),
            12 => random.pick(&self.secrets),
            13 => random.pick(&self.secrets) + u64::from(random.u32(..4096)),
            14 => base.wrapping_add(data),
            15 => {
                let edge = random.pick(&[
                    0,
                    1 << 32,
                    base,
                    base + WINDOW_SIZE,
                    guard_end(base),
                    1 << 47,
                    1 << 63,
                    0xffff_8000_0000_0000,
                    u64::from(INFO),
                    u64::from(GATES),
                    u64::from(LAST),
                    u64::from(LAST) + 4096 - 32,
                ]);
                edge.wrapping_add(u64::from(random.u32(..64)))
                    .wrapping_sub(32)
            }
            16 => u64::from(LAST) + u64::from(random.u32(..4096)),
            17 => u64::MAX - u64::from(random.u32(..256)),
            18 => u64::from(text_start(IMPORTS)) + u64::from(random.u32(..65536)),
            _ => random.u64(..),
        }
    }

    fn judge(
        &mut self,
        base: u64,
        text: &[u8],
        text_offset: u32,
        job: &Job,
        input: &Input,
        output: &Output,
    ) {
        let case = Case {
            base,
            text,
            text_offset,
            entry: job.entry,
            traced: job.traced,
            single: job.snippet.single,
            stack_top: self.shared.stack_top(),
            stack_len: STACK as u64,
        };
        let verdict = case.check(output);
        let tally = &mut self.tally;
        if job.snippet.single {
            tally.singles += 1;
            tally.from_bytes += u64::from(job.snippet.origin == Origin::Bytes);
            if let Origin::Row(row) = job.snippet.origin {
                tally.rows[row].tried += 1;
                tally.rows[row].completed += u64::from(verdict == Ok(End::Completed));
            }
        } else {
            tally.sequences += 1;
        }
        if job.traced {
            tally.stepped += output.steps + u64::from(output.kind == crate::runner::RETURNED);
        }
        match verdict {
            Ok(End::Completed) => tally.completed += 1,
            Ok(End::Faulted) => tally.faulted += 1,
            Ok(End::Endless) => tally.endless += 1,
            Ok(End::Missing(offset)) => {
                tally.missing += 1;
                let at = (offset - text_offset) as usize;
                let bytes = &text[at..text.len().min(at + 8)];
                *tally
                    .missing_examples
                    .entry(format!("{bytes:02x?}"))
                    .or_default() += 1;
            }
            Err(what) => {
                let example = format!(
                    "base {base:#x} entry {:#x} {:x?}\n{input:x?}\n{output:x?}",
                    job.entry, job.snippet
                );
                self.broken(what, example);
            }
        }
    }

    fn broken(&mut self, what: String, example: String) {
        self.tally.broken.entry(what).or_insert((0, example)).0 += 1;
    }

    /// The rows, in the order of the allow list.
    pub fn rows(&self) -> &[&'static Row] {
        self.encoder.rows()
    }

    /// Rows that never ran without a fault, other than those that cannot.
    pub fn rows_never_completed(&self) -> Vec<&'static str> {
        use postern_verifier::InstructionKind::{IndirectCall, IndirectJump, Trap};
        let rows = self.encoder.rows().iter().zip(&self.tally.rows);
        rows.filter(|(row, tally)| {
            tally.completed == 0 && !matches!(row.kind, Trap | IndirectCall | IndirectJump)
        })
        .map(|(row, _)| row.name)
        .collect()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} single instructions ({} from mutated or random bytes), {} sequences",
            self.singles, self.from_bytes, self.sequences
        )?;
        writeln!(
            f,
            "{} completed, {} faulted as allowed, {} endless, {} not on this processor; {} instructions stepped and compared",
            self.completed, self.faulted, self.endless, self.missing, self.stepped
        )?;
        for (bytes, count) in self.missing_examples.iter().take(20) {
            writeln!(f, "  missing: {bytes} {count} times")?;
        }
        for (what, (count, example)) in self.broken.iter().take(20) {
            writeln!(f, "BROKEN, {count} times: {what}\n  {example}")?;
        }
        Ok(())
    }
}
