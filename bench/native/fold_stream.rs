//! The observer log's fold natively: `fold_stream FILE ROUNDS` folds the rows of a file, one a line, and prints nanoseconds a row.
#![allow(missing_docs, clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::time::Instant;

use journal_fold::observer_log::protocol::Rows;
use journal_fold::observer_log::Fold;

fn main() {
    let mut args = std::env::args().skip(1);
    let text = std::fs::read(args.next().unwrap()).unwrap();
    let rounds: usize = args.next().unwrap().parse().unwrap();
    let (mut bytes, mut ends) = (Vec::new(), Vec::new());
    for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        bytes.extend_from_slice(line);
        ends.push(u32::try_from(bytes.len()).unwrap());
    }
    let sequences: Vec<u64> = (0..ends.len() as u64).collect();
    let mut times = Vec::new();
    // The first round does not count.
    for round in 0..=rounds {
        let started = Instant::now();
        let mut fold = Fold::new();
        fold.push_page(&Rows::new(&bytes, &ends, &sequences).unwrap()).unwrap();
        let elapsed = started.elapsed().as_nanos() as f64 / ends.len() as f64;
        assert_eq!(fold.next(), ends.len() as u64);
        if round > 0 {
            times.push(elapsed);
        }
    }
    times.sort_by(f64::total_cmp);
    println!("{{\"best\":{},\"median\":{}}}", times[0], times[times.len() / 2]);
}
