//! The protection table: of this process, and of another one.
use super::*;
use postern::{Cell, MemoryTable, TableError, memory_table};
use std::io::{Read, Write};

/// What a domain may do at an offset, by the table.
pub(crate) fn cell(table: &MemoryTable, name: &str, offset: u32) -> Cell {
    let is_named = |d: &postern::TableDomain| d.name == name;
    let column = table
        .columns
        .iter()
        .position(|c| c.domains.iter().any(is_named));
    let column = column.unwrap_or_else(|| panic!("no {name} in\n{table}"));
    let in_row = |r: &&postern::Row| r.start <= offset && u64::from(offset) < r.end;
    let row = table.rows.iter().find(in_row);
    row.map_or(Cell::default(), |row| row.cell(column))
}

#[test]
fn every_domain_and_area_is_in_it() {
    support::succeeds_in_child("table::every_domain_and_area_is_in_it", || {
        assert!(matches!(memory_table(), Err(TableError::NoTable(_))));
        let i = image();
        assert!(memory_table().unwrap().columns.is_empty());
        let twins = [named(&i, "twin one"), named(&i, "twin two")];
        let other = named(
            &i,
            "other\nwith a name that is as long as it is because it does not fit into the table",
        );
        let area = Shared::builder().name("config").zeroed(3 * P).unwrap();
        let secret = Shared::builder().name("secret").zeroed(P).unwrap();
        other.share(&area, Prot::ReadWrite).unwrap();
        area.protect(&other, P..2 * P, Prot::None).unwrap();
        for twin in &twins {
            twin.share(&area, Prot::Read).unwrap();
        }
        let table = memory_table().unwrap();
        assert_eq!(table.columns.len(), 2, "{table}");
        let shown = |text: &str| assert!(table.to_string().contains(text), "{text}\n{table}");
        shown("process ");
        shown("3 domains");
        shown("A  2 domains, image: twin one at 0x");
        shown("other\u{fffd}with a name that is as long as it is");
        let rows: Vec<_> = table.rows.iter().filter(|r| r.is_area).collect();
        let at = area.offset().0;
        // `secret` lies below `config`; the host sees it, and nobody else.
        let text = |row: &postern::Row| {
            let cells = [row.host, row.cell(0), row.cell(1)]
                .map(|c| c.to_string())
                .join(" ");
            format!(
                "{:#x} {:#x} {cells} {}",
                row.start,
                row.end - u64::from(row.start),
                row.what
            )
        };
        let expected = [
            format!("{:#x} 0x1000 rw - - area `secret`", secret.offset().0),
            format!("{at:#x} 0x1000 rw r rw area `config`"),
            format!("{:#x} 0x1000 rw r - area `config`", at + PAGE),
            format!("{:#x} 0x1000 rw r rw area `config`", at + 2 * PAGE),
        ];
        assert_eq!(rows.iter().map(|r| text(r)).collect::<Vec<_>>(), expected);
        // The parts of the image.
        let layout = i.tables().layout;
        let part = |offset| cell(&table, "twin one", offset).to_string();
        let parts = [
            0x1_0000,
            layout.text_end - 1,
            layout.stack - 1,
            layout.stack,
            layout.heap_start,
        ];
        assert_eq!(parts.map(part), ["r", "x", "r", "rw", "rw"]);
        assert_eq!(part(layout.heap_start + (1 << 16)), "-");
        for what in [
            "info page, and zeros up to the gate slots",
            "gate slots and text",
            "constants",
            "data stack and data",
        ] {
            shown(what);
        }
        // What is gone is not shown.
        drop((twins, area, secret));
        let table = memory_table().unwrap();
        assert_eq!(table.columns.len(), 1, "{table}");
        assert!(table.to_string().contains("`config`") && !table.to_string().contains("`secret`"));
        drop(other);
        let table = memory_table().unwrap();
        assert!(table.columns.is_empty() && table.rows.is_empty(), "{table}");
    });
}

#[test]
fn processes_without_a_table() {
    let none = u32::MAX >> 1;
    let e = MemoryTable::of_process(none).unwrap_err();
    assert!(
        matches!(e, TableError::Process { process, .. } if process == none),
        "{e}"
    );
    let mut sleeper = std::process::Command::new("sleep")
        .arg("100")
        .spawn()
        .unwrap();
    let e = MemoryTable::of_process(sleeper.id()).unwrap_err();
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert!(
        matches!(e, TableError::NoTable(process) if process == sleeper.id()),
        "{e}"
    );
}

/// Parent and child go their own ways, and each shows what it has.
#[test]
fn forked_processes_have_tables_of_their_own() {
    support::succeeds_in_child("table::forked_processes_have_tables_of_their_own", || {
        let i = image();
        let common = named(&i, "common");
        let leaving = named(&i, "leaving");
        let area = Shared::builder().name("common area").zeroed(P).unwrap();
        common.share(&area, Prot::ReadWrite).unwrap();
        let (mut to_parent, mut to_child) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
        match unsafe { libc::fork() } {
            0 => {
                let born = named(&i, "born in the child");
                let own = Shared::builder().name("own area").zeroed(P).unwrap();
                born.share(&own, Prot::Read).unwrap();
                area.protect(&common, .., Prot::Read).unwrap();
                store(&born, 0, 1).unwrap_err();
                drop(leaving);
                to_parent.1.write_all(b"x").unwrap();
                to_child.0.read_exact(&mut [0]).unwrap();
                unsafe { libc::_exit(0) };
            }
            child => {
                to_parent.0.read_exact(&mut [0]).unwrap();
                let later = named(&i, "later in the parent");
                let (own, other) = (
                    memory_table().unwrap(),
                    MemoryTable::of_process(child as u32).unwrap(),
                );
                to_child.1.write_all(b"x").unwrap();
                let mut status = 0;
                assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
                assert_eq!(status, 0);
                let has = |table: &MemoryTable, name: &str| table.to_string().contains(name);
                for (name, in_parent, in_child) in [
                    ("common at", true, true),
                    ("`common area`", true, true),
                    ("leaving", true, false),
                    ("later in the parent", true, false),
                    ("born in the child", false, true),
                    ("`own area`", false, true),
                ] {
                    assert_eq!(has(&own, name), in_parent, "{name}\n{own}");
                    assert_eq!(has(&other, name), in_child, "{name}\n{other}");
                }
                let at = area.offset().0;
                assert_eq!(cell(&own, "common", at).to_string(), "rw");
                assert_eq!(cell(&other, "common", at).to_string(), "r");
                drop((leaving, later));
            }
        }
    });
}

/// A thousand areas and many domains, with the usual limits of a process; and nothing of it stays.
#[test]
fn a_thousand_areas() {
    support::succeeds_in_child("table::a_thousand_areas", || {
        let limit = libc::rlimit {
            rlim_cur: 64,
            rlim_max: 64,
        };
        let i = image();
        drop((named(&i, "first"), Shared::new(P).unwrap()));
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        let before = (support::mappings(), support::descriptors());
        let areas: Vec<Shared> = (0..1000)
            .map(|n| {
                Shared::builder()
                    .name(format!("area {n}"))
                    .zeroed((1 + n % 3) * P)
                    .unwrap()
            })
            .collect();
        let domains: Vec<Domain> = (0..20).map(|n| named(&i, &format!("domain {n}"))).collect();
        let right = |d: usize, a: usize| [Prot::None, Prot::Read, Prot::ReadWrite][(a + d) % 3];
        for (d, domain) in domains.iter().enumerate() {
            for (a, area) in areas.iter().enumerate() {
                domain.share(area, right(d, a)).unwrap();
            }
        }
        let table = memory_table().unwrap();
        // All that may do the same are one column, also of very many.
        assert_eq!(table.columns.len(), 3);
        assert_eq!(table.rows.iter().filter(|r| r.is_area).count(), 1000);
        for (a, area) in areas.iter().enumerate().step_by(37) {
            area.write(0, &(a as u32).to_ne_bytes()).unwrap();
            for (d, domain) in domains.iter().enumerate() {
                let found = cell(&table, domain.name(), area.offset().0).to_string();
                assert_eq!(found, right(d, a).to_string());
                assert_eq!(tried(domain, area, 0), right(d, a));
            }
        }
        drop((areas, domains));
        let after = (support::mappings(), support::descriptors());
        // Clean windows that the image keeps have six mappings each.
        assert!(
            after.0 <= before.0 + 16 * 7 && after.1 == before.1,
            "{before:?} {after:?}"
        );
        assert!(memory_table().unwrap().rows.is_empty());
    });
}

#[test]
fn thousands_of_domains_stay_readable() {
    support::succeeds_in_child("table::thousands_of_domains_stay_readable", || {
        let i = image();
        let domains: Vec<Domain> = (0..3000)
            .map(|_| support::cold(&i).build().unwrap())
            .collect();
        let own: Vec<Shared> = (0..20).map(|_| Shared::new(P).unwrap()).collect();
        for (area, domain) in own.iter().zip(&domains) {
            domain.share(area, Prot::Read).unwrap();
        }
        let mut table = memory_table().unwrap();
        assert_eq!(table.columns.len(), 21);
        let text = table.to_string();
        assert!(
            text.contains("2980 domains, image: ") && text.contains("… and 2976 more"),
            "{text}"
        );
        assert!(
            text.lines().count() < 100 && text.lines().all(|line| line.len() < 300),
            "{text}"
        );
        // One of them alone.
        let name = domains[7].name();
        assert!(table.has_domain(name) && !table.has_domain("nobody"));
        table.retain(|domain| domain.name == name);
        assert_eq!(
            (table.columns.len(), table.columns[0].domains.len()),
            (1, 1)
        );
        let shared: Vec<_> = table.rows.iter().filter(|r| r.is_area).collect();
        assert_eq!(shared.len(), 1, "{table}");
        assert_eq!(
            (shared[0].start, shared[0].cell(0).to_string()),
            (own[7].offset().0, "r".into())
        );
    });
}
