//! The fold inside a checkpoint's state: taken whole or not at all, put back in its place, and compared with what entries give.

use journal_fold::deferred_clock::checkpoint::{differences, NoFold};
use journal_fold::deferred_clock::{put_into_state, Fold, RunFold};
use journal_fold::error::Code;

use crate::history::{completed, fired, scheduled};
use crate::store::{push_all, Entry};

const KEY: &str = "flows.engine.deferred-clock";
const EMPTY: &str = r#"{"clocks":[],"deferreds":[]}"#;

fn clock(name: &str, due: &str) -> String {
    format!(r#"{{"flowName":"F","executionId":"r","clockName":"{name}","deferredName":"d","dueAtMs":{due},"completedAtMs":null}}"#)
}

fn kept(clocks: &str) -> String {
    format!(r#"{{"{KEY}":{{"clocks":[{clocks}],"deferreds":[]}}}}"#)
}

/// Reads a state over a fold that holds something, and gives the encoding.
fn read(state: &str) -> Result<String, NoFold> {
    let mut fold = Fold::new();
    fold.read_checkpoint(kept(&clock("before", "1")).as_bytes()).unwrap();
    let read = fold.read_checkpoint(state.as_bytes());
    let mut out = Vec::new();
    fold.write_encoded(&mut out);
    let out = String::from_utf8(out).unwrap();
    if read.is_err() {
        assert_eq!(out, EMPTY, "what is not taken leaves nothing");
    }
    read.map(|()| out)
}

fn encoding(clocks: &str) -> String {
    format!(r#"{{"clocks":[{clocks}],"deferreds":[]}}"#)
}

#[test]
fn a_fold_is_taken_whole_or_not_at_all() {
    let (good, bad) = (clock("c", "1"), clock("c", "-1"));
    assert_eq!(read(&kept(&good)), Ok(encoding(&good)));
    for clocks in [bad.clone(), format!("{good},{bad}"), format!("{bad},{good}"), format!("{good},1"), format!("{good},[]")] {
        assert_eq!(read(&kept(&clocks)), Err(NoFold::Malformed), "{clocks}");
    }
}

#[test]
fn a_state_is_judged_to_its_end() {
    let sound = kept(&clock("c", "1"));
    for tail in ["x", "}", ",", "{}"] {
        assert!(matches!(read(&format!("{sound}{tail}")), Err(NoFold::NotJson(_))), "{tail}");
    }
    assert_eq!(read(&format!(" {sound}\n")), Ok(encoding(&clock("c", "1"))));
    // A malformed fold in a text that is no JSON is a text that is no JSON.
    assert!(matches!(read(&kept("1,").replace("]}", "}")), Err(NoFold::NotJson(_))));
    assert!(matches!(read(&format!(r#"{{"{KEY}":1,"#)), Err(NoFold::NotJson(_))));
}

#[test]
fn of_repeated_members_the_last_counts_also_when_the_others_are_bad() {
    let (one, two) = (clock("one", "1"), clock("two", "2"));
    assert_eq!(read(&format!(r#"{{"{KEY}":{},"{KEY}":{}}}"#, encoding(&one), encoding(&two))), Ok(encoding(&two)));
    assert_eq!(read(&format!(r#"{{"{KEY}":5,"{KEY}":{}}}"#, encoding(&two))), Ok(encoding(&two)));
    assert_eq!(read(&format!(r#"{{"{KEY}":{},"{KEY}":5}}"#, encoding(&two))), Err(NoFold::Malformed));
    let lists = |first: &str, second: &str| format!(r#"{{"{KEY}":{{"clocks":{first},"deferreds":[],"clocks":{second}}}}}"#);
    assert_eq!(read(&lists(&format!("[{one}]"), &format!("[{two}]"))), Ok(encoding(&two)));
    assert_eq!(read(&lists("null", &format!("[{two}]"))), Ok(encoding(&two)));
    assert_eq!(read(&lists(&format!("[{one},7]"), &format!("[{two}]"))), Ok(encoding(&two)));
    assert_eq!(read(&lists(&format!("[{one}]"), "{}")), Err(NoFold::Malformed));
    let spelled = KEY.replace('f', "\\u0066");
    assert_eq!(read(&format!(r#"{{"{spelled}":{}}}"#, encoding(&one))), Ok(encoding(&one)));
}

#[test]
fn of_repeated_rows_the_last_values_stay_at_the_first_place() {
    let rows = [clock("a", "1"), clock("b", "2"), clock("a", "3")].join(",");
    assert_eq!(read(&kept(&rows)), Ok(encoding(&[clock("a", "3"), clock("b", "2")].join(","))));
}

#[test]
fn a_deep_or_broken_state_is_no_danger() {
    let deep = "[".repeat(200_000);
    assert!(matches!(read(&deep), Err(NoFold::NotJson(_))));
    assert!(matches!(read(&format!(r#"{{"{KEY}":{deep}"#)), Err(NoFold::NotJson(_))));
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(read(&deep), Err(NoFold::NotARecord));
    assert_eq!(read(&format!(r#"{{"x":{deep},"{KEY}":{EMPTY}}}"#)), Ok(EMPTY.into()));
    assert_eq!(read(&kept(&deep)), Err(NoFold::Malformed));
    assert_eq!(Fold::new().read_checkpoint(b"{\"\xff\":1}"), Err(NoFold::NotUtf8(2)));
}

#[test]
fn an_encoded_fold_is_sound_or_refused_by_name() {
    let refused = |encoded: &[u8]| {
        let mut fold = Fold::new();
        fold.read_checkpoint(kept(&clock("before", "1")).as_bytes()).unwrap();
        let error = fold.read_encoded(encoded).unwrap_err();
        assert!(fold.clocks().is_empty());
        assert_eq!(error.code, Code::StateMalformed);
        error.found.clone()
    };
    assert_eq!(refused(b"[]"), "other JSON");
    assert_eq!(refused(b"{\"clocks\":[]}"), "other JSON");
    assert_eq!(refused(b"{\"clocks\":[],\"deferreds\":[]} x"), "a text that is no JSON: expected the end of the text at byte 29, found 'x'");
    assert_eq!(refused(b""), "a text that is no JSON: expected a value at byte 0, found the end of the text");
    assert_eq!(refused(b"{\"x\":\"\xc3\"}"), "a text that is not UTF-8 from byte 6 on");
}

#[test]
fn a_fold_is_put_where_the_key_is_or_at_the_end_and_all_else_keeps_its_spelling() {
    let put = |base: Option<&str>| String::from_utf8(put_into_state(base.map(str::as_bytes), b"{F}").unwrap()).unwrap();
    assert_eq!(put(None), format!(r#"{{"{KEY}":{{F}}}}"#));
    assert_eq!(put(Some("{}")), format!(r#"{{"{KEY}":{{F}}}}"#));
    assert_eq!(put(Some(" { } ")), format!(r#" {{ "{KEY}":{{F}}}} "#));
    assert_eq!(put(Some("{ \"a\" : 1.0e0 , \"b\":[ ] }\n")), format!("{{ \"a\" : 1.0e0 , \"b\":[ ] ,\"{KEY}\":{{F}}}}\n"));
    assert_eq!(put(Some(&format!(r#"{{"{KEY}" :  [1, 2] , "z":1}}"#))), format!(r#"{{"{KEY}" :  {{F}} , "z":1}}"#));
    assert_eq!(put(Some(&format!(r#"{{"{KEY}":1,"{KEY}":"x"}}"#))), format!(r#"{{"{KEY}":1,"{KEY}":{{F}}}}"#), "the one that counts");
    let spelled = KEY.replace('c', "\\u0063");
    assert_eq!(put(Some(&format!(r#"{{"{spelled}":null}}"#))), format!(r#"{{"{spelled}":{{F}}}}"#));
    assert_eq!(put(Some("{\"__proto__\":{},\"\\ud800\":\"\\udfff\"}")), format!("{{\"__proto__\":{{}},\"\\ud800\":\"\\udfff\",\"{KEY}\":{{F}}}}"));
}

#[test]
fn a_base_that_is_no_object_is_refused_and_says_where_it_breaks() {
    for base in ["[]", "null", "7", "\"{}\"", "true", " [1] "] {
        let error = put_into_state(Some(base.as_bytes()), EMPTY.as_bytes()).unwrap_err();
        assert_eq!((error.code, error.offset, error.found.as_str()), (Code::BaseNotObject, None, "other JSON"), "{base}");
    }
    for (base, offset) in [(&b""[..], 0), (b"{", 1), (b"{} x", 3), (b"{\"a\":}", 5), (b"{\"a\":\"\xff\"}", 6)] {
        let error = put_into_state(Some(base), EMPTY.as_bytes()).unwrap_err();
        assert_eq!((error.code, error.offset), (Code::BaseNotObject, Some(offset)));
    }
}

fn folded(entries: &[Entry]) -> RunFold {
    let mut run = RunFold::new();
    push_all(&mut run, entries, 0).unwrap();
    run
}

#[test]
fn a_checkpoint_is_compared_row_by_row() {
    let base = [scheduled(0, "r", "a", 1), scheduled(1, "r", "b", 2), completed(2, "r", "d", 3, "one")];
    let compared = |other: &[Entry]| {
        let (expected, found) = (folded(&base), folded(other));
        let shown = |row: Option<Vec<u8>>| row.map(|row| String::from_utf8(row).unwrap());
        let all = differences(expected.fold(), found.fold());
        all.into_iter().map(|difference| (shown(difference.expected), shown(difference.found))).collect::<Vec<_>>()
    };
    assert_eq!(compared(&base), []);
    let mut fired_too = base.to_vec();
    fired_too.push(fired(3, "r", "b", 9));
    let b = clock("b", "2");
    assert_eq!(compared(&fired_too), [(Some(b.clone()), Some(b.replace("null", "9")))]);
    assert_eq!(compared(&base[1..]), [(Some(clock("a", "1")), Some(b.clone())), (Some(b.clone()), None)]);
    let swapped = [scheduled(1, "r", "b", 2), scheduled(2, "r", "a", 1), completed(3, "r", "d", 3, "one")];
    assert_eq!(compared(&swapped).len(), 2, "order is part of what a checkpoint keeps");
    let other_exit = [base[0].clone(), base[1].clone(), completed(2, "r", "d", 3, "two")];
    assert_eq!(compared(&other_exit).len(), 1, "so are digests");
    assert_eq!(compared(&[]).len(), 3);
}
