//! One sort for all lists. The standard library's is compiled anew for each type of element, at 5 to 9 KB of the wasm module each time; this
//! one sorts places, by a comparison behind a pointer, and then puts the elements there.

use std::cmp::Ordering;

/// Sorts `rows` by `compare`; equal ones keep their order. Takes a word a row beside them.
pub(crate) fn sort_by<Row>(rows: &mut [Row], mut compare: impl FnMut(&Row, &Row) -> Ordering) {
    if rows.len() < 2 {
        return;
    }
    let mut places: Vec<usize> = (0..rows.len()).collect();
    sort_places(&mut places, &mut |one, other| match (rows.get(one), rows.get(other)) {
        (Some(one), Some(other)) => compare(one, other),
        _ => Ordering::Equal,
    });
    for start in 0..rows.len() {
        let mut at = start;
        while let Some(place) = places.get_mut(at) {
            // A place that was followed stands for itself, so that no cycle is followed twice.
            let from = std::mem::replace(place, at);
            if from == start {
                break;
            }
            rows.swap(at, from);
            at = from;
        }
    }
}

#[inline(never)]
fn sort_places(places: &mut [usize], compare: &mut dyn FnMut(usize, usize) -> Ordering) {
    places.sort_unstable_by(|one, other| compare(*one, *other).then(one.cmp(other)));
}

#[cfg(test)]
mod tests {
    use super::sort_by;

    #[test]
    fn it_sorts_as_the_standard_library_does_and_keeps_the_order_of_equals() {
        let mut state: u32 = 1;
        for length in 0..200 {
            let rows: Vec<(u32, usize)> = (0..length)
                .map(|place| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    ((state >> 16) % 23, place)
                })
                .collect();
            let (mut ours, mut theirs) = (rows.clone(), rows);
            sort_by(&mut ours, |one, other| one.0.cmp(&other.0));
            theirs.sort_by_key(|row| row.0);
            assert_eq!(ours, theirs);
        }
    }
}
