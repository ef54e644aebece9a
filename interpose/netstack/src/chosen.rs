//! Which packets are the stack's.

use crate::options::Options;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use postern_filter::classic::Instruction;
use postern_filter::{Filter, NoNames};

/// ARP, and of the packets of IPv4 to its address or to all those that its user's filter takes: as
/// a program for the kernel.
///
/// # Errors
/// The user's filter is none; its place is said.
pub fn of(options: &Options) -> Result<Vec<Instruction>, String> {
    let compile = |source: &str| {
        Filter::compile(source, &NoNames).map_err(|error| format!("--filter {error}"))
    };
    // By itself first: its errors are found where they are, and it cannot end the group around it.
    compile(&options.filter)?;
    let address = u32::from_be_bytes(options.address);
    let network = u32::MAX.checked_shr(options.prefix.into()).unwrap_or(0);
    let [own, all] = [address, address | network].map(Ipv4Addr::from_bits);
    let mut source =
        format!("ip and (dst host {own} or dst host {all} or dst host 255.255.255.255)");
    if !options.filter.trim().is_empty() {
        source += &format!(" and ({})", options.filter);
    }
    let filter = compile(&format!("arp or ({source})"))?;
    let long = || String::from("--filter is too long for the kernel");
    filter.to_classic().ok_or_else(long)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would do with it: the program is read again.
    fn filter(user: &str) -> Result<Filter, String> {
        let list = of(&Options {
            address: [10, 0, 0, 2],
            prefix: 24,
            filter: user.into(),
            ..Options::default()
        })?;
        let lines = list.iter().map(|one| {
            let (code, jt, jf, k) = (one.code, one.jt, one.jf, one.k);
            format!("{code} {jt} {jf} {k}\n")
        });
        let text = format!("{}\n{}", list.len(), lines.collect::<String>());
        Filter::classic(&text).map_err(|error| error.show(&text))
    }

    /// A frame: IPv4 to this address, TCP to this port.
    fn frame(to: [u8; 4], port: u16) -> Vec<u8> {
        let mut frame = alloc::vec![0; 60];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        frame[23] = 6;
        frame[26..30].copy_from_slice(&[10, 0, 0, 9]);
        frame[30..34].copy_from_slice(&to);
        frame[34..36].copy_from_slice(&7u16.to_be_bytes());
        frame[36..38].copy_from_slice(&port.to_be_bytes());
        frame
    }

    #[test]
    fn packets_for_its_address_are_the_stacks() {
        let filter = filter("").unwrap();
        let takes = |frame: &[u8]| filter.run(frame, 60) != 0;
        for mine in [[10, 0, 0, 2], [10, 0, 0, 255], [255; 4]] {
            assert!(takes(&frame(mine, 80)), "{mine:?}");
        }
        for other in [[10, 0, 0, 3], [10, 0, 1, 2], [10, 0, 1, 255]] {
            assert!(!takes(&frame(other, 80)), "{other:?}");
        }
        let mut arp = frame([10, 0, 0, 3], 80);
        arp[12..14].copy_from_slice(&[8, 6]);
        assert!(takes(&arp));
        arp[12..14].copy_from_slice(&[0x86, 0xdd]);
        assert!(!takes(&arp));
    }

    #[test]
    fn its_user_takes_less_and_never_more() {
        let filter = filter("tcp dst port 80 or udp").unwrap();
        let takes = |frame: &[u8]| filter.run(frame, 60) != 0;
        assert!(takes(&frame([10, 0, 0, 2], 80)));
        assert!(!takes(&frame([10, 0, 0, 2], 81)));
        assert!(!takes(&frame([10, 0, 0, 3], 80)));
        let mut arp = frame([10, 0, 0, 3], 81);
        arp[12..14].copy_from_slice(&[8, 6]);
        assert!(takes(&arp));
    }

    #[test]
    fn filters_that_are_none() {
        for wrong in ["tpc port 80", "udp) or (tcp", "(", "port http"] {
            let error = filter(wrong).unwrap_err();
            assert!(error.starts_with("--filter at "), "{error}");
        }
    }
}
