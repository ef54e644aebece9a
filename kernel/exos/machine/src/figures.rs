//! The paper's tables about library operating systems: what ExOS and Linux take for the same.
//!
//! No row may take more instructions than Linux's.

use crate::cold;
use postern_aegis_machine::figures::{Row, Table, only_aegis, row as unheld};

/// A row that may not take more than Linux's.
const fn row(what: &'static str, name: &'static str) -> Row {
    unheld(what, name, name).times(1)
}

/// The same of a program with inverted page tables, beside the same Linux.
const fn inverted(what: &'static str, name: &'static str, linux: &'static str) -> Row {
    unheld(what, name, linux).times(1)
}

/// All tables.
pub const TABLES: &[Table] = &[
    Table {
        title: "Table 8: communication, one way",
        rows: &[
            row("pipe", "pipe").times(10),
            unheld("pipe', inlined; pipe", "pipe-inline", "pipe").times(10),
            row("shared memory", "shm"),
            unheld("LRPC; by pipes", "lrpc", "lrpc").times(1),
        ],
    },
    Table {
        title: "Table 9: product of 150 x 150 integers",
        rows: &[row("matrix", "matrix")],
    },
    Table {
        title: "Table 10: virtual memory, linear page table",
        rows: &[
            only_aegis("dirty", "dirty"),
            row("prot1", "prot1"),
            row("prot100", "prot100"),
            row("unprot100", "unprot100"),
            row("trap", "trap").times(10),
            row("appel1", "appel1").times(10),
            row("appel2", "appel2").times(10),
        ],
    },
    Table {
        title: "Table 12: calls that trust the server",
        rows: &[
            unheld("LRPC; by pipes", "lrpc", "lrpc").times(1),
            unheld("trusted LRPC; LRPC by pipes", "tlrpc", "lrpc").times(1),
        ],
    },
    Table {
        title: "Table 13: virtual memory, inverted page table",
        rows: &[
            only_aegis("dirty, inverted", "dirty-inverted"),
            inverted("prot1, inverted", "prot1-inverted", "prot1"),
            inverted("prot100, inverted", "prot100-inverted", "prot100"),
            inverted("unprot100, inverted", "unprot100-inverted", "unprot100"),
            inverted("trap, inverted", "trap-inverted", "trap").times(10),
            inverted("appel1, inverted", "appel1-inverted", "appel1").times(10),
            inverted("appel2, inverted", "appel2-inverted", "appel2").times(10),
        ],
    },
    Table {
        title: "Extensions inside a process",
        rows: &[
            only_aegis("call of an empty function", "extension-call"),
            only_aegis("call with a service inside", "extension-service"),
            only_aegis("call that faults, and a reset", "extension-fault"),
        ],
    },
    Table {
        title: "A slice by a scheduler of the program's own, there and back",
        rows: &[
            only_aegis("round robin", "round-robin"),
            only_aegis("stride", "stride"),
            only_aegis("earliest deadline first", "deadline"),
        ],
    },
    Table {
        title: "Files in memory, beside tmpfs",
        rows: &[
            row("open, read of a cached page, close", "open-read"),
            unheld("copy of a file of 10 MB", "copy-10mb", "copy-10mb"),
        ],
    },
    Table {
        title: "Processes",
        rows: &[
            row("fork, exit, wait", "fork"),
            row("fork, exec of a small program, wait", "fork-exec"),
        ],
    },
    Table {
        title: "A cold start, firmware included",
        rows: &[row("from the machine's start to the prompt", cold::NAME)],
    },
];
