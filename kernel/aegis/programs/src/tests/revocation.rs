pub const ALL: &[crate::scenario::Scenario] = &[];
