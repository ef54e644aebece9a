//! Who opens a connection.

use super::connection::{Connection, NEVER, Owed, State};
use super::pace::Pace;
use super::{Reply, Tcp};
use crate::frame::{ACK, Fields, MSS, OPTIONS, RST, SYN, Segment, Template, offers};

/// Sizes of segments that a cookie can say.
const SIZES: [u16; 8] = [64, 256, 512, 536, 1024, 1360, 1440, 1460];
/// Cookies hold for so long: a unit of their clock, or two.
const UNIT: u64 = 64_000_000;
/// What a peer says less than is not believed: every host takes 576 bytes (RFC 791), but some links
/// are shorter.
const SMALLEST: u16 = 64;

/// Our options: the MSS, and that windows are scaled, ours by nothing.
fn options(scales: bool) -> [u8; OPTIONS] {
    let [high, low] = MSS.to_be_bytes();
    match scales {
        true => [2, 4, high, low, 1, 3, 3, 0],
        false => [2, 4, high, low, 1, 1, 1, 0],
    }
}

impl Tcp {
    fn template(&self, segment: &Segment<'_>) -> Template {
        Template::new(
            (self.own.station, segment.to, segment.port),
            (segment.station, segment.from, segment.from_port),
        )
    }

    fn words(segment: &Segment<'_>) -> u64 {
        u64::from(segment.from) << 32 | u64::from(segment.from_port) << 16 | u64::from(segment.port)
    }

    /// A first number that nobody can tell, and that goes on with time (RFC 6528).
    fn first_number(&self, segment: &Segment<'_>, now: u64) -> u32 {
        let hash = self.key.hash(&[Tcp::words(segment), 1]) as u32;
        hash.wrapping_add((now / 4) as u32)
    }

    /// A number that says what we would remember.
    fn cookie(&self, segment: &Segment<'_>, begun: u32, size: usize, unit: u64) -> u32 {
        let said = (unit as u32 & 31) << 27 | (size as u32 & 7) << 24;
        let words = [
            Tcp::words(segment),
            u64::from(begun) << 32 | u64::from(said),
            unit,
        ];
        said | self.key.hash(&words) as u32 & 0xff_ffff
    }

    /// The size that a cookie says, if it is ours and of late.
    fn size_of(&self, segment: &Segment<'_>, now: u64) -> Option<u16> {
        let cookie = segment.acknowledged.wrapping_sub(1);
        let size = (cookie >> 24 & 7) as usize;
        let unit = now / UNIT;
        let begun = segment.sequence.wrapping_sub(1);
        let mut units = [unit, unit.wrapping_sub(1)].into_iter();
        let is = units.any(|unit| self.cookie(segment, begun, size, unit) == cookie);
        SIZES.get(size).copied().filter(|_| is)
    }

    /// What a connection begins with.
    fn begin(&self, segment: &Segment<'_>, first: u32, now: u64) -> Connection {
        Connection {
            from: segment.from,
            to: segment.to,
            from_port: segment.from_port,
            port: segment.port,
            template: self.template(segment),
            room: self.own.room,
            first,
            next: first,
            most: first,
            progress: now,
            deadline: now + self.own.patience,
            ..Connection::none()
        }
    }

    /// A place for a connection: one that has ended goes, or one that has long been silent.
    fn make_room(&mut self, now: u64) {
        if self.table.count() < self.own.connections {
            return;
        }
        let waits = self.table.all().filter(|(_, c)| c.state == State::Waits);
        let oldest = waits.min_by_key(|(_, c)| c.deadline).map(|(slot, _)| slot);
        let idle = || {
            let idle = self.table.all().filter(|(_, c)| {
                let silent = now.saturating_sub(c.progress) > 1_000_000;
                c.state == State::Open && c.queued == 0 && silent
            });
            idle.min_by_key(|(_, c)| c.progress).map(|(slot, _)| slot)
        };
        match (oldest, idle()) {
            (Some(slot), _) => self.remove(slot),
            (None, Some(slot)) => self.abort(slot),
            (None, None) => {}
        }
    }

    /// A segment of no connection; the place of one that its cookie opens.
    pub(super) fn stranger(&mut self, segment: &Segment<'_>, now: u64) -> Option<u16> {
        if segment.port != self.own.port || segment.flags & RST != 0 {
            return None;
        }
        match segment.flags & (SYN | ACK) {
            SYN => self.asked(segment, now),
            ACK => {
                let ours = self.cookies != 0 && now.saturating_sub(self.cookies) < 2 * UNIT;
                if ours && let Some(size) = self.size_of(segment, now) {
                    return self.by_cookie(segment, size, now);
                }
                self.refuse(segment, now);
            }
            // A SYN that acknowledges opens nothing here, and no flag at all says nothing.
            0 => {}
            _ => self.refuse(segment, now),
        }
        None
    }

    /// There is no such connection (RFC 9293, section 3.10.7.1).
    fn refuse(&mut self, segment: &Segment<'_>, now: u64) {
        if self.may_challenge(now) {
            let fields = Fields {
                sequence: segment.acknowledged,
                flags: RST,
                ..Fields::default()
            };
            let template = self.template(segment);
            self.reply(Reply {
                template,
                fields,
                options: None,
            });
        }
    }

    /// A SYN: a half-open connection, or a cookie if there are many.
    fn asked(&mut self, segment: &Segment<'_>, now: u64) {
        let offers = offers(segment.options);
        // Without the option it is 536 (RFC 9293, section 3.7.1).
        let mss = offers.mss.unwrap_or(536).clamp(SMALLEST, MSS);
        if self.half_open >= self.own.half_open {
            return self.send_cookie(segment, mss, now);
        }
        self.make_room(now);
        let connection = Connection {
            state: State::Half,
            expected: segment.sequence.wrapping_add(1),
            edge: segment.sequence.wrapping_add(1),
            mss,
            pace: Pace::new(mss),
            scale: offers.scale.unwrap_or(0),
            window: u32::from(segment.window),
            told: (segment.sequence, 0),
            owed: Owed::Now,
            scales: offers.scale.is_some(),
            ..self.begin(segment, self.first_number(segment, now), now)
        };
        match self.table.insert(&self.key, connection) {
            Some(slot) => {
                self.half_open += 1;
                self.touch(slot);
            }
            None => self.send_cookie(segment, mss, now),
        }
    }

    fn send_cookie(&mut self, segment: &Segment<'_>, mss: u16, now: u64) {
        let fits = SIZES.iter().rposition(|size| *size <= mss).unwrap_or(0);
        self.cookies = now.max(1);
        let fields = Fields {
            sequence: self.cookie(segment, segment.sequence, fits, now / UNIT),
            acknowledged: segment.sequence.wrapping_add(1),
            flags: SYN | ACK,
            window: self.own.room,
        };
        let template = self.template(segment);
        self.reply(Reply {
            template,
            fields,
            options: Some(options(false)),
        });
    }

    fn by_cookie(&mut self, segment: &Segment<'_>, mss: u16, now: u64) -> Option<u16> {
        self.make_room(now);
        let connection = Connection {
            state: State::Open,
            expected: segment.sequence,
            edge: segment.sequence.wrapping_add(self.own.room.into()),
            mss,
            pace: Pace::new(mss),
            window: u32::from(segment.window),
            widest: u32::from(segment.window),
            told: (segment.sequence, segment.acknowledged),
            ..self.begin(segment, segment.acknowledged, now)
        };
        self.next_due = self.next_due.min(connection.deadline);
        let slot = self.table.insert(&self.key, connection)?;
        self.counts.opened += 1;
        self.counts.by_cookie += 1;
        Some(slot)
    }

    /// The answer to a SYN.
    pub(super) fn synchronise(
        connection: &mut Connection,
        room: u16,
        now: u64,
    ) -> (Fields, [u8; OPTIONS]) {
        let fields = Fields {
            sequence: connection.first,
            acknowledged: connection.expected,
            flags: SYN | ACK,
            window: room,
        };
        connection.edge = connection.expected.wrapping_add(room.into());
        connection.next = connection.first.wrapping_add(1);
        connection.most = connection.next;
        connection.owed = Owed::Nothing;
        if connection.due == NEVER {
            connection.due = now + (connection.pace.timeout << connection.tries);
        }
        (fields, options(connection.scales))
    }
}
