//! Pages: parts that fit together, and those that do not.

use journal_fold::error::Code;
use journal_fold::journal::{Entry, Lists, Page};

fn refused(bytes: &[u8], ends: &[u32], seqs: &[i64], types: &[u8]) -> Code {
    Page::new(bytes, ends, seqs, types).unwrap_err().code
}

#[test]
fn a_page_gives_its_entries_in_order() {
    let page = Page::new("[]{}é".as_bytes(), &[2, 4, 4, 6], &[1, 2, i64::MAX, 0], &[0, 1, 255, 3]).unwrap();
    let expected = [(1, 0, &b"[]"[..]), (2, 1, b"{}"), (i64::MAX as u64, 255, b""), (0, 3, "é".as_bytes())];
    let found: Vec<_> = page.entries().map(|Entry { seq, type_code, payload }| (seq, type_code, payload)).collect();
    assert_eq!(found, expected);
    assert_eq!((page.len(), page.is_empty(), page.is_utf8()), (4, false, true));
    let empty = Page::new(b"", &[], &[], &[]).unwrap();
    assert_eq!((empty.len(), empty.is_empty(), empty.entries().count()), (0, true, 0));
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    assert_eq!(refused(b"{}", &[2], &[1, 2], &[0]), Code::PageMalformed);
    assert_eq!(refused(b"{}", &[2], &[1], &[]), Code::PageMalformed);
    assert_eq!(refused(b"{}", &[], &[], &[]), Code::PageMalformed);
    assert_eq!(refused(b"{}{}", &[3, 2], &[1, 2], &[0, 0]), Code::PageMalformed);
    assert_eq!(refused(b"{}", &[3], &[1], &[0]), Code::PageMalformed);
    assert_eq!(refused(b"{}", &[1], &[1], &[0]), Code::PageMalformed);
    assert_eq!(refused(b"{}", &[u32::MAX], &[1], &[0]), Code::PageMalformed);
    for negative in [-1, i64::MIN] {
        let error = Page::new(b"{}{}", &[2, 4], &[1, negative], &[0, 0]).unwrap_err();
        assert_eq!((error.code, error.found.as_str()), (Code::SeqInvalid, negative.to_string().as_str()));
    }
}

#[test]
fn a_page_knows_whether_every_payload_is_utf8() {
    let is_utf8 = |bytes: &[u8], ends: &[u32]| {
        let (seqs, types) = (vec![0; ends.len()], vec![0; ends.len()]);
        Page::new(bytes, ends, &seqs, &types).unwrap().is_utf8()
    };
    assert!(is_utf8("aé😀".as_bytes(), &[1, 3, 7]));
    for cut in [2, 4, 5, 6] {
        assert!(!is_utf8("aé😀".as_bytes(), &[cut, 7]), "a cut at {cut} is inside a character");
    }
    assert!(!is_utf8(b"a\xff", &[2]));
    assert!(!is_utf8(b"\xed\xa0\x80", &[3]), "a surrogate is no UTF-8");
}

#[test]
fn lists_as_sql_assembles_them_make_a_page() {
    let mut lists = Lists::default();
    let page = lists.page(b"[]{}", b"2,0,-1,2", b"0,5,6,9223372036854775807", b"0349").unwrap();
    let found: Vec<_> = page.entries().map(|entry| (entry.seq, entry.type_code, entry.payload)).collect();
    assert_eq!(found, [(0, 0, &b"[]"[..]), (5, 3, b""), (6, 4, b""), (i64::MAX as u64, 9, b"{}")]);
    assert!(lists.page(b"", b"", b"", b"").unwrap().is_empty(), "nothing is left of the page before");
}

#[test]
fn lists_that_shift_or_make_no_sense_are_refused() {
    let code = |bytes: &[u8], lengths: &str, seqs: &str, types: &str| {
        Lists::default().page(bytes, lengths.as_bytes(), seqs.as_bytes(), types.as_bytes()).map(|page| page.len()).map_err(|error| error.code)
    };
    assert_eq!(code(b"{}", "2", "1", "0"), Ok(1));
    // A NULL that one aggregate skips and the others do not.
    assert_eq!(code(b"{}", "2", "1,2", "00"), Err(Code::PageMalformed));
    assert_eq!(code(b"{}", "2", "1", "00"), Err(Code::PageMalformed));
    for lengths in ["3", "1", "2,", ",2", "", "+2", "2.0", " 2", "-2", "4294967296", "99999999999999999999", "4294967295,4294967295"] {
        assert_eq!(code(b"{}", lengths, "1", "0"), Err(Code::PageMalformed), "lengths {lengths}");
    }
    for seqs in ["", "x", "1e3", "9223372036854775808", "1,"] {
        assert_eq!(code(b"{}", "2", seqs, "0"), Err(Code::PageMalformed), "seqs {seqs}");
    }
    assert_eq!(code(b"{}", "2", "-1", "0"), Err(Code::SeqInvalid));
}
