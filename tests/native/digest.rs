//! Digests: of stored texts, and of a state.

use journal_fold::deferred_clock::{Fold, RunFold};
use journal_fold::digest::{content_digest, fingerprint, from_hex, sorted_rows_sha256, to_hex, StateDigest};
use proptest::prelude::*;
use sha2::{Digest as _, Sha256};

use crate::history::{completed, consumed, fired, scheduled};
use crate::scenario::scenario;
use crate::store::{push_all, Entry};

fn fold(entries: &[Entry], page_rows: usize) -> RunFold {
    let mut run = RunFold::new();
    push_all(&mut run, entries, page_rows).unwrap();
    run
}

fn sha256(fold: &Fold) -> String {
    String::from_utf8(to_hex(&sorted_rows_sha256(fold.canonical_rows()))).unwrap()
}

#[test]
fn a_content_digest_is_sha256_in_lower_case() {
    let hex = |text: &str| String::from_utf8(to_hex(&content_digest(text.as_bytes()))).unwrap();
    assert_eq!(hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_eq!(hex("one"), "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
}

#[test]
fn only_64_lower_case_digits_spell_a_digest() {
    let sound = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    assert_eq!(from_hex(sound.as_bytes()), Some(content_digest(b"one")));
    let spoilt = [sound.trim_end_matches('d'), &format!("{sound}\n"), &format!("{sound}0"), &sound.to_uppercase(), &sound.replace('7', "g"), "", &sound.replace("e", "é")];
    for text in spoilt {
        assert_eq!(from_hex(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn a_state_digest_is_written_and_read_back() {
    let mut digest = StateDigest::default();
    assert_eq!(digest.to_hex(), b"00000000000000000000000000000000");
    digest.add_row(b"row");
    let hex = digest.to_hex();
    assert_eq!((hex.len(), StateDigest::from_hex(&hex)), (32, Some(digest)));
    assert_eq!(StateDigest::from_hex(&hex[1..]), None);
    assert_eq!(StateDigest::from_hex(&[&hex[..], b"0"].concat()), None);
    assert_eq!(StateDigest::from_hex(&hex.to_ascii_uppercase()), None);
}

#[test]
fn a_state_digest_is_a_sum_of_rows() {
    let of = |rows: &[&[u8]]| {
        let mut digest = StateDigest::default();
        rows.iter().for_each(|row| digest.add_row(row));
        digest
    };
    assert_eq!(of(&[b"a", b"b", b"c"]), of(&[b"c", b"a", b"b"]));
    let mut merged = of(&[b"a"]);
    merged.merge(of(&[b"b", b"c"]));
    assert_eq!(merged, of(&[b"a", b"b", b"c"]));
    merged.remove_row(b"b");
    assert_eq!(merged, of(&[b"a", b"c"]));
    // Two equal rows do not cancel, as they would under XOR.
    assert_ne!(of(&[b"a", b"a"]), of(&[]));
    assert_ne!(of(&[b"a", b"a"]), of(&[b"b", b"b"]));
    merged.remove_row(b"never there");
    merged.add_row(b"never there");
    assert_eq!(merged, of(&[b"a", b"c"]));
}

#[test]
fn what_a_table_holds_changes_the_digest_and_what_it_does_not_hold_changes_only_the_other_one() {
    let digests = |entries: &[Entry]| fold(entries, 0).fold().digests();
    let base = [scheduled(0, "r", "c", 1), fired(1, "r", "c", 2), completed(2, "r", "d", 3, "one"), consumed(3, "r", "d", 4)];
    let sound = digests(&base);
    assert_eq!(sound.state, fold(&base, 0).fold().digest());
    for (place, other) in [
        (0, scheduled(0, "r", "c", 9)),
        (0, scheduled(0, "s", "c", 1)),
        (1, fired(1, "r", "c", 9)),
        (2, completed(2, "r", "d", 9, "one")),
        (3, consumed(3, "r", "d", 9)),
        (3, consumed(3, "r", "no", 4)),
    ] {
        let mut entries = base.clone();
        entries[place] = other;
        assert_ne!(digests(&entries).state, sound.state, "entry {place}");
        assert_ne!(digests(&entries).recorded, sound.recorded, "entry {place}");
    }
    let mut entries = base.clone();
    entries[2] = completed(2, "r", "d", 3, "two");
    assert_eq!(digests(&entries).state, sound.state);
    assert_ne!(digests(&entries).recorded, sound.recorded);
}

#[test]
fn a_clock_and_a_completion_of_one_name_are_two_rows() {
    let clock = fold(&[scheduled(0, "r", "d", 1)], 0);
    let completion = fold(&[completed(0, "r", "d", 1, "one")], 0);
    assert_ne!(clock.fold().digest(), completion.fold().digest());
    assert_ne!(sha256(clock.fold()), sha256(completion.fold()));
}

#[test]
fn sha256_is_over_the_rows_sorted_by_address() {
    // A name longer than another that sorts behind it: lengths are no part of the order.
    let entries = [completed(0, "r", "z", 1, "one"), scheduled(1, "r", "b", 2), scheduled(2, "r", "aaa", 3), scheduled(3, "q", "zz", 4)];
    let mut expected = Sha256::new();
    let mut row = |tag: u8, texts: &[&str], times: [u64; 2]| {
        let mut bytes = vec![tag];
        for text in texts {
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        times.iter().for_each(|time| bytes.extend(time.to_le_bytes()));
        expected.update((bytes.len() as u64).to_le_bytes());
        expected.update(bytes);
    };
    row(b'c', &["F", "q", "zz", "d"], [4, u64::MAX]);
    row(b'c', &["F", "r", "aaa", "d"], [3, u64::MAX]);
    row(b'c', &["F", "r", "b", "d"], [2, u64::MAX]);
    row(b'd', &["F", "r", "z"], [1, u64::MAX]);
    let expected: String = expected.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(sha256(fold(&entries, 0).fold()), expected);
}

#[test]
fn no_two_sequences_of_texts_have_one_fingerprint_by_joining_alike() {
    let print = |texts: &[&[u8]]| fingerprint(&mut Vec::new(), texts);
    assert_ne!(print(&[b"ab", b"c"]), print(&[b"a", b"bc"]));
    assert_ne!(print(&[b"a", b""]), print(&[b"", b"a"]));
    assert_ne!(print(&[b"a"]), print(&[b"a", b""]));
    assert_eq!(print(&[b"a", b"b"]), print(&[b"a", b"b"]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn digests_know_neither_pages_nor_the_order_of_rows(scenario in scenario(), page_rows in 1_usize..5, turn in any::<usize>()) {
        for entries in scenario.store().journal.values() {
            let mut run = RunFold::new();
            if push_all(&mut run, entries, 0).is_err() {
                continue;
            }
            let again = fold(entries, page_rows);
            prop_assert_eq!(run.fold().digests(), again.fold().digests());
            prop_assert_eq!(sha256(run.fold()), sha256(again.fold()));

            // The same rows in another order.
            let text = crate::store::encoded(&run);
            let mut state: serde_json::Value = serde_json::from_str(&text).unwrap();
            for list in ["clocks", "deferreds"] {
                let rows = state[list].as_array_mut().unwrap();
                let by = turn % rows.len().max(1);
                rows.rotate_left(by);
            }
            let mut turned = Fold::new();
            turned.read_encoded(state.to_string().as_bytes()).unwrap();
            prop_assert_eq!(run.fold().digests(), turned.digests());
            prop_assert_eq!(sha256(run.fold()), sha256(&turned));
        }
    }
}
