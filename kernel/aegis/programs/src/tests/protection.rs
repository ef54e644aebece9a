//! What the processor refuses to environments, as far as one can see that.

use postern_aegis::calls::{self, Target};
use postern_aegis::{Error, Mapping, address, memory, pages};

use crate::scenario::{Named, Outcome, check, refused, same};
use crate::trusted::{Probe, any_call, probe, read_faults, write_faults};

crate::scenarios! {
    "protection.kernel-memory" kernel_memory;
    "protection.books" books;
    "protection.no-execute" no_execute;
    "protection.instructions" instructions;
    "protection.descriptors" descriptors;
    "protection.addresses" addresses;
}

/// Places of the kernel's half: where kernels have their text, and their map of physical memory.
const KERNEL: [u64; 7] = [
    0xffff_8000_0000_0000,
    0xffff_8000_0010_0000,
    0xffff_c000_0000_0000,
    0xffff_ffff_8000_0000,
    0xffff_ffff_8010_0000,
    0xffff_ffff_8020_0000,
    0xffff_ffff_ffff_f000,
];

fn kernel_memory() -> Outcome {
    for at in KERNEL {
        check(read_faults(at), "the kernel's memory is read")?;
        check(write_faults(at), "the kernel's memory is written")?;
        let jump = probe(Probe::Jump, at);
        check(
            jump.is_err_and(|fault| fault.vector == 14),
            "the kernel's memory is run",
        )?;
        let write = any_call(30, [at, 8, 0, 0, 0, 0]);
        check(write.is_err(), "the kernel writes its own memory for us")?;
        let judge = any_call(32, [memory::FIRST, 8, at, 0, 0, 0]);
        check(judge.is_err(), "the kernel stores to its own memory for us")?;
    }
    Ok(())
}

/// Books and tables are there to be read, by everybody, and for nothing else.
fn books() -> Outcome {
    let table = address::TABLES + (address::ROOT_PROGRAM >> 12) * 8;
    for at in [address::BOOKS, address::BOOKS + 4096, table] {
        check(!read_faults(at), "it cannot be read")?;
        check(write_faults(at), "it is written")?;
        let jump = probe(Probe::Jump, at);
        check(jump.is_err_and(|fault| fault.code & 16 != 0), "it is run")?;
        let page = at & !0xfff;
        refused(
            "protecting it",
            calls::protect(page, Mapping::WRITE),
            Error::Argument,
        )?;
        refused(
            "unmapping it",
            calls::unmap(page, Target::SELF),
            Error::Argument,
        )?;
    }
    Ok(())
}

fn no_execute() -> Outcome {
    let at = memory::reserve(1);
    let page = memory::map_fresh(at, Mapping::WRITE).named("mapping")?;
    memory::write(at, 0xc3);
    let jump = probe(Probe::Jump, at);
    check(
        jump.is_err_and(|fault| fault.vector == 14 && fault.code == 0x15),
        "it runs",
    )?;
    calls::protect(at, Mapping::EXECUTE).named("protecting")?;
    check(probe(Probe::Jump, at) == Ok(0), "it does not run")?;
    check(write_faults(at), "it is written and run")?;
    pages::free(page).named("freeing")
}

fn instructions() -> Outcome {
    use Probe::{
        Cli, Clts, Hlt, In, Invlpg, Lgdt, Out, Rdmsr, ReadCr3, Sti, Swapgs, WriteCr3, Wrmsr,
    };
    let all = [
        Cli, Sti, Hlt, In, Out, Rdmsr, Wrmsr, ReadCr3, WriteCr3, Invlpg, Clts, Swapgs, Lgdt,
    ];
    for instruction in all {
        let fault = probe(instruction, 0);
        check(
            fault.is_err_and(|fault| fault.vector == 13),
            "a privileged instruction is done",
        )?;
    }
    let stac = probe(Probe::Stac, 0);
    check(stac.is_err_and(|fault| fault.vector == 6), "stac is done")?;
    same("the level for ports", probe(Probe::Iopl, 0).unwrap_or(1), 0)
}

/// UMIP: instructions that say where the kernel's descriptors are.
fn descriptors() -> Outcome {
    for instruction in [
        Probe::Sgdt,
        Probe::Sidt,
        Probe::Sldt,
        Probe::Str,
        Probe::Smsw,
    ] {
        let fault = probe(instruction, 0);
        check(
            fault.is_err_and(|fault| fault.vector == 13),
            "a descriptor is said",
        )?;
    }
    Ok(())
}

fn addresses() -> Outcome {
    let page = pages::take().named("a page")?;
    let mapping = Mapping::new(page, 0);
    let bad = [
        0,
        1,
        0xfff,
        address::TABLES,
        address::TABLES + 4096,
        address::BOOKS,
        1 << 47,
        1 << 48,
        0xffff_8000_0000_0000,
        0xffff_ffff_ffff_f000,
    ];
    for at in bad {
        refused(
            "mapping",
            calls::map(at, mapping, 0, Target::SELF),
            Error::Argument,
        )?;
        refused("unmapping", calls::unmap(at, Target::SELF), Error::Argument)?;
        refused("protecting", calls::protect(at, 0), Error::Argument)?;
        let table = any_call(14, [at, 1, page.into(), 0, 0, 0]);
        if at >= address::TABLES {
            refused("a table", table, Error::Argument)?;
        } else {
            check(table.is_err(), "a table there")?;
        }
    }
    pages::free(page).named("freeing")
}
