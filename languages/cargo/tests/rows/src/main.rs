fn main() {
    for (name, row) in rows::ROWS {
        for seed in [1, 0x1234_5678_9abc_def0] {
            println!("{name}: {seed} {}", row(seed));
        }
    }
}
