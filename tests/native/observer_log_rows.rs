//! Rows as text: the same row from every spelling of it, itself again from its own, and never a panic.

use std::fmt::Write as _;

use journal_fold::observer_log::{Pair, Row, RowFault, RowReader};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, Index};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Numbers of every length, and those around which readers break.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0_u64..12,
        any::<u64>(),
        (0_u32..64).prop_flat_map(|bits| 0..=(u64::MAX >> bits)),
        (0_u32..20, 0_u64..3).prop_map(|(exponent, more)| 10_u64.pow(exponent) - 1 + more),
        select(vec![u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) + 1, 9_999_999_999_999_999_999, 10_000_000_000_000_000_000]),
    ]
}

fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    vec((number(), number()), 0..8)
}

pub fn any_row() -> impl Strategy<Value = Row> {
    prop_oneof![
        (number(), number()).prop_map(|(conversation_id, progress)| Row::Track { conversation_id, progress }),
        (number(), number()).prop_map(|(conversation_id, progress)| Row::Advance { conversation_id, progress }),
        pairs().prop_map(Row::Arms),
        (pairs(), pairs()).prop_map(|(progress, armed)| Row::Snapshot { progress, armed }),
    ]
}

/// Anything a reader may be given under a name that it does not know.
fn further() -> impl Strategy<Value = String> {
    let leaf = select(vec!["null", "true", "-0", "1.5e-3", "123456789012345678901", "\"\"", "\"\\u0041\\ud83d\\ude00\"", "\"é,}]\""]);
    leaf.prop_map(String::from).prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(" , "))),
            vec(inner, 0..4).prop_map(|items| {
                let members = items.iter().map(|item| format!("\"a\" : {item}"));
                format!("{{{}}}", members.collect::<Vec<_>>().join(","))
            }),
        ]
    })
}

#[derive(Debug, Clone)]
struct Spelling {
    order: Vec<Index>,
    outside: Vec<String>,
    inside: Vec<String>,
    space: &'static str,
    escape: bool,
}

fn spelling() -> impl Strategy<Value = Spelling> {
    let space = select(vec!["", " ", "\n\t", "\r\n  "]);
    (vec(any::<Index>(), 12), vec(further(), 0..3), vec(further(), 0..3), space, any::<bool>())
        .prop_map(|(order, outside, inside, space, escape)| Spelling { order, outside, inside, space, escape })
}

impl Spelling {
    fn text(&self, text: &str) -> String {
        if !self.escape {
            return format!("\"{text}\"");
        }
        text.chars().fold(String::from("\""), |mut out, letter| {
            write!(out, "\\u{:04x}", letter as u32).unwrap();
            out
        }) + "\""
    }

    fn object(&self, mut members: Vec<(String, String)>, further: &[String]) -> String {
        members.extend(further.iter().map(|value| (String::from("x"), value.clone())));
        let mut text = String::from("{");
        for index in &self.order {
            if members.is_empty() {
                break;
            }
            let (name, value) = members.remove(index.index(members.len()));
            let comma = if text.len() > 1 { "," } else { "" };
            let space = self.space;
            write!(text, "{comma}{space}{}{space}:{space}{value}{space}", self.text(&name)).unwrap();
        }
        text + "}"
    }

    fn pairs(&self, pairs: &[Pair]) -> String {
        let space = self.space;
        let items = pairs.iter().map(|(id, value)| format!("{space}[{space}{id}{space},{space}{value}]{space}"));
        format!("[{}{space}]", items.collect::<Vec<_>>().join(","))
    }

    fn of(&self, row: &Row) -> String {
        let kind = (String::from("row"), self.text(row.kind().as_str()));
        let mut members = vec![kind];
        match row {
            Row::Track { conversation_id, progress } | Row::Advance { conversation_id, progress } => {
                members.push(("conversation_id".into(), conversation_id.to_string()));
                members.push(("observer_progress".into(), progress.to_string()));
            }
            Row::Arms(arms) => members.push(("arms".into(), self.pairs(arms))),
            Row::Snapshot { progress, armed } => {
                members.push(("progress".into(), self.pairs(progress)));
                members.push(("armed".into(), self.pairs(armed)));
            }
        }
        let inner = self.object(members, &self.inside);
        let outer = vec![
            (String::from("schema_version"), row.kind().schema_version().to_string()),
            (String::from("row"), inner),
        ];
        let space = self.space;
        format!("{space}{}{space}", self.object(outer, &self.outside))
    }
}

fn read(payload: &[u8]) -> Result<Row, RowFault> {
    RowReader::new().read(payload).map(|row| row.to_row())
}

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn a_row_is_itself_again(row in any_row()) {
        prop_assert_eq!(read(&row.encode()), Ok(row));
    }

    #[test]
    fn every_spelling_of_a_row_is_that_row(row in any_row(), spelling in spelling()) {
        let text = spelling.of(&row);
        prop_assert_eq!(read(text.as_bytes()), Ok(row), "{}", text);
    }

    #[test]
    fn a_reader_keeps_nothing_from_one_row_to_the_next(rows in vec((any_row(), spelling()), 1..8)) {
        let mut reader = RowReader::new();
        for (row, spelling) in rows {
            let text = if spelling.escape { row.encode() } else { spelling.of(&row).into_bytes() };
            prop_assert_eq!(reader.read(&text).map(|row| row.to_row()), Ok(row));
        }
    }

    #[test]
    fn a_damaged_row_is_another_row_or_a_fault_with_its_place(
        row in any_row(), spelling in prop::option::of(spelling()), at in any::<Index>(), byte in any::<u8>(), how in 0..4_u8,
    ) {
        let mut text = spelling.map_or_else(|| row.encode(), |spelling| spelling.of(&row).into_bytes());
        let at = at.index(text.len());
        match how {
            0 => text[at] = byte,
            1 => text.insert(at, byte),
            2 => { text.remove(at); }
            _ => text.truncate(at),
        }
        match read(&text) {
            // What reads as a row reads as the same one when it is written again.
            Ok(row) => prop_assert_eq!(read(&row.encode()), Ok(row)),
            Err(RowFault::Malformed(error)) => {
                prop_assert!(error.offset <= text.len());
                prop_assert_eq!(error.found, text.get(error.offset).copied());
            }
            Err(RowFault::Version { expected, found }) => prop_assert_ne!(expected, found),
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}

const TRACK: &str = r#"{"schema_version":1,"row":{"row":"track","conversation_id":1,"observer_progress":0}}"#;

fn fault(text: &str) -> (usize, &'static str) {
    match read(text.as_bytes()) {
        Err(RowFault::Malformed(error)) => (error.offset, error.expected),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn a_fault_says_where_it_is_and_what_was_expected() {
    assert_eq!(fault(""), (0, "an object"));
    assert_eq!(fault("[]"), (0, "an object"));
    assert_eq!(fault(&TRACK.replace(":1,\"obs", ":01,\"obs")), (60, "',' or '}'"));
    assert_eq!(fault(&TRACK.replace(":1,\"obs", ":-1,\"obs")).0, 59);
    assert_eq!(fault(&TRACK.replace("track", "purge")), (33, "track, advance, arms or snapshot"));
    assert_eq!(fault(&TRACK.replace("\"schema_version\":1,", "")), (64, "a schema_version"));
    assert_eq!(fault(&TRACK.replace(",\"observer_progress\":0", "")), (60, "an observer_progress"));
    assert_eq!(fault(&format!("{TRACK} x")), (85, "the end of the text"));
    assert_eq!(fault(&TRACK.replace("{\"row\"", "{\"conversation_id\":2,\"row\"")).1, "only one conversation_id");
}

#[test]
fn numbers_beyond_2_64_and_all_other_spellings_of_numbers_are_faults() {
    for number in ["18446744073709551616", "99999999999999999999", "100000000000000000000", "-1", "-0", "1.0", "1e0", "00", "\"1\"", "null"] {
        let text = TRACK.replace(":0}", &format!(":{number}}}"));
        assert!(matches!(read(text.as_bytes()), Err(RowFault::Malformed(_))), "{number}");
    }
    for number in [u64::MAX, u64::MAX - 1, 10_000_000_000_000_000_000, 99_999_999, 100_000_000, 9_999_999_999_999_999] {
        let text = TRACK.replace(":0}", &format!(":{number}}}"));
        assert_eq!(read(text.as_bytes()), Ok(Row::Track { conversation_id: 1, progress: number }));
    }
}

#[test]
fn hostile_text_is_refused_or_read_and_never_followed_down() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    // Beside the row the grammar alone counts; inside it the whole payload has at most 127 levels.
    let beside = TRACK.replace("\"row\":{", &format!("\"x\":{},\"row\":{{", deep(1_000_000)));
    assert!(read(beside.as_bytes()).is_ok());
    assert!(read(TRACK.replace("\"obs", &format!("\"x\":{},\"obs", deep(125))).as_bytes()).is_ok());
    for levels in [126, 1_000_000] {
        let inside = TRACK.replace("\"obs", &format!("\"x\":{},\"obs", deep(levels)));
        assert_eq!(fault(&inside).1, "at most 127 levels in the whole payload");
    }
    assert!(read("[".repeat(1_000_000).as_bytes()).is_err());
    for (value, inside) in [("1e999", false), ("\"\\ud800\"", false), ("[[\"\\udc00\"]]", false), ("{\"\\ud800\":1}", false), ("\"\\ud83d\\ude00\"", true)] {
        assert!(read(TRACK.replace("\"row\":{", &format!("\"x\":{value},\"row\":{{")).as_bytes()).is_ok(), "{value}");
        assert_eq!(read(TRACK.replace("\"obs", &format!("\"x\":{value},\"obs")).as_bytes()).is_ok(), inside, "{value}");
    }
    assert_eq!(fault(&TRACK.replace("\"obs", "\"\\ud800\":1,\"obs")).1, "no unpaired surrogate");
    // A long list is one row like any other.
    let long = Row::Arms((0..200_000).map(|id| (id, u64::MAX - id)).collect());
    assert_eq!(read(&long.encode()), Ok(long));
}
