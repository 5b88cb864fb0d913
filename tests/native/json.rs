//! Reading and writing JSON: the verdict, the values and the spelling are those of `JSON.parse` and `JSON.stringify`.

use journal_fold::json::{first_invalid_utf8, members, Raw, Reader, SyntaxError};

/// Judges a whole text by skipping over it.
fn judge(text: &[u8]) -> Result<(), SyntaxError> {
    let mut reader = Reader::new(text);
    reader.value()?;
    reader.end()
}

/// Judges a whole text by stepping into everything.
fn walk(text: &[u8]) -> Result<(), SyntaxError> {
    fn step(reader: &mut Reader) -> Result<(), SyntaxError> {
        if let Some(mut cursor) = reader.enter_object() {
            while reader.member(&mut cursor)?.is_some() {
                step(reader)?;
            }
        } else if let Some(mut cursor) = reader.enter_array() {
            while reader.element(&mut cursor)? {
                step(reader)?;
            }
        } else {
            reader.value()?;
        }
        Ok(())
    }
    let mut reader = Reader::new(text);
    step(&mut reader)?;
    reader.end()
}

fn accepted(text: impl AsRef<[u8]>) -> bool {
    judge(text.as_ref()).is_ok()
}

/// The one value that a text holds.
fn value(text: &[u8]) -> Raw<'_> {
    let mut reader = Reader::new(text);
    let value = reader.value().unwrap();
    reader.end().unwrap();
    value
}

/// The WTF-8 that a text in quotes stands for.
fn text_of(json: &str) -> Vec<u8> {
    value(json.as_bytes()).as_text().unwrap().to_wtf8()
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text.get(..200).unwrap_or(text)).into_owned()
}

mod grammar {
    use super::*;

    #[test]
    fn every_kind_of_value_is_accepted_and_named() {
        assert_eq!(value(b"null"), Raw::Null);
        assert_eq!(value(b"true"), Raw::Bool(true));
        assert_eq!(value(b"false"), Raw::Bool(false));
        assert_eq!(value(b"-1.5e+3"), Raw::Number(b"-1.5e+3"));
        assert_eq!(value(b" [1, {}] "), Raw::Array(b"[1, {}]"));
        assert_eq!(value(b"\t{\"a\": []}\n"), Raw::Object(b"{\"a\": []}"));
        let Raw::Text(text) = value(br#" "a\"b" "#) else { panic!("a text") };
        assert_eq!(text.spelled(), br#"a\"b"#);
        assert_eq!(text.plain(), None);
        assert_eq!(text.to_wtf8(), b"a\"b");
    }

    #[test]
    fn only_the_four_white_characters_may_stand_between_tokens() {
        let tokens = [&b"{"[..], b"\"a\"", b":", b"[", b"1", b",", b"null", b"]", b",", b"\"b\"", b":", b"{", b"}", b"}"];
        for byte in 0..=0xff_u8 {
            for place in 0..=tokens.len() {
                let text = [tokens[..place].concat(), vec![byte], tokens[place..].concat()].concat();
                let white = matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
                // A byte that continues a token is another matter.
                if white || byte <= b' ' || byte >= 0x7f {
                    assert_eq!(accepted(&text), white, "{byte:#04x} at {place}");
                    assert_eq!(judge(&text), walk(&text), "{byte:#04x} at {place}");
                }
            }
        }
        assert!(accepted(" \t\r\n{ \t\r\n\"a\" \t\r\n: \t\r\n[ \t\r\n] \t\r\n, \t\r\n\"b\" \t\r\n: \t\r\n{ \t\r\n} \t\r\n} \t\r\n"));
        assert!(!accepted("\u{feff}{}"), "a byte order mark is no white space");
        assert!(!accepted("[\u{a0}1]"), "nor is a no-break space");
    }

    #[test]
    fn numbers_follow_the_grammar_to_the_letter() {
        for good in ["0", "-0", "1", "10", "0.0", "0.10", "-0.1", "1e1", "1E1", "1e+1", "1e-1", "0e0", "0E+00", "1.25e-07", "9007199254740993"] {
            assert_eq!(value(good.as_bytes()), Raw::Number(good.as_bytes()));
            assert!(accepted(format!("[{good}]")) && accepted(format!("{{\"a\":{good}}}")), "{good}");
        }
        for bad in [
            "-", "+1", "00", "01", "-01", "-00", ".5", "-.5", "1.", "1.e1", "1e", "1e+", "1E-", "1ee1", "1e1.5", "1.2.3", "--1", "0x1", "1_0",
            "Infinity", "-Infinity", "NaN", "1n", "1f", "0b1", "1e٣", "１", "1 2",
        ] {
            assert!(!accepted(bad) && !accepted(format!("[{bad}]")) && !accepted(format!("{{\"a\":{bad}}}")), "{bad}");
        }
    }

    #[test]
    fn literals_are_whole_and_in_lower_case() {
        for word in ["true", "false", "null"] {
            for length in 0..word.len() {
                assert!(!accepted(&word.as_bytes()[..length]), "{word} cut at {length}");
            }
            for bad in [word.to_uppercase(), format!("{word}x"), format!("{word}{word}"), format!("x{word}"), word.replace('l', "1") + "0"] {
                assert!(!accepted(&bad) && !accepted(format!("[{bad}]")), "{bad}");
            }
        }
    }

    #[test]
    fn brackets_commas_and_colons_stand_where_they_must() {
        for good in ["{}", "[]", "[[]]", "[{}]", r#"{"":{}}"#, r#"{"a":1,"b":[2,3]}"#, "[[],[]]", "[{},{}]", r#"{"a":{},"a":{}}"#] {
            assert!(accepted(good), "{good}");
        }
        for bad in [
            "", " ", "{", "}", "[", "]", ",", ":", "[,]", "[1,]", "[,1]", "[1,,2]", "[1 2]", "[1:2]", "[\"a\":1]", "{,}", "{1}", "{1:2}", "{a:1}",
            "{'a':1}", "{\"a\"}", "{\"a\":}", "{\"a\",1}", "{\"a\":1,}", "{,\"a\":1}", "{\"a\":1,,\"b\":2}", "{\"a\":1 \"b\":2}", "{\"a\"::1}",
            "{\"a\":1:2}", "{null:1}", "{[]:1}", "{{}:1}", "[}", "{]", "[{]}", "{\"a\":[}]", "[]]", "{}}", "{}{}", "[] []", "1,", "1 1", "\"a\" \"b\"",
            "[1", "[1,", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "// 1", "1 // 1", "/* */ 1", "[1] #", "'a'", "`a`", "undefined",
        ] {
            assert!(!accepted(bad), "{bad}");
            assert_eq!(judge(bad.as_bytes()), walk(bad.as_bytes()), "{bad}");
        }
    }

    #[test]
    fn a_text_holds_anything_but_quotes_backslashes_and_control_characters() {
        for byte in 0..0x80_u8 {
            let allowed = byte >= 0x20 && byte != b'"' && byte != b'\\';
            assert_eq!(accepted([b'"', byte, b'"']), allowed, "{byte:#04x}");
            assert_eq!(accepted([b'"', b'\\', byte, b'"']), b"\"\\/bfnrt".contains(&byte), "escaped {byte:#04x}");
        }
        for character in ['\u{7f}', '\u{80}', 'é', '\u{7ff}', '\u{800}', '\u{2028}', '\u{2029}', '\u{d7ff}', '\u{e000}', '\u{ffff}', '\u{10000}', '\u{10ffff}'] {
            assert_eq!(text_of(&format!("\"{character}\"")), character.to_string().as_bytes());
        }
    }

    #[test]
    fn escapes_are_resolved() {
        assert_eq!(text_of(r#""\"\\\/\b\f\n\r\t""#), b"\"\\/\x08\x0c\n\r\t");
        for code in (0..=0xd7ff_u32).chain(0xe000..=0xffff) {
            let character = char::from_u32(code).unwrap().to_string();
            assert_eq!(text_of(&format!("\"\\u{code:04x}\"")), character.as_bytes());
            assert_eq!(text_of(&format!("\"<\\u{code:04X}>\"")), format!("<{character}>").as_bytes());
        }
        for bad in [r"\u", r"\u0", r"\u00", r"\u004", r"\u004g", r"\ug041", r"\U0041", r"\u+041", r"\u{41}", r"\x41", r"\0", r"\'", r"\u00 41", r"\uФ041"] {
            assert!(!accepted(format!("\"{bad}\"")) && !accepted(format!("\"{bad}")), "{bad}");
        }
    }

    #[test]
    fn a_broken_text_says_where_and_what_and_what_instead() {
        let table: &[(&str, usize, &str, Option<u8>)] = &[
            ("", 0, "a value", None),
            ("  ", 2, "a value", None),
            ("}", 0, "a value", Some(b'}')),
            ("\u{feff}1", 0, "a value", Some(0xef)),
            ("nul", 3, "true, false or null", None),
            ("trve", 2, "true, false or null", Some(b'v')),
            ("fals3", 4, "true, false or null", Some(b'3')),
            ("1 x", 2, "the end of the text", Some(b'x')),
            ("01", 1, "the end of the text", Some(b'1')),
            ("{} {}", 3, "the end of the text", Some(b'{')),
            ("-", 1, "a digit", None),
            ("-x", 1, "a digit", Some(b'x')),
            ("[1.]", 3, "a digit", Some(b']')),
            ("1e", 2, "a digit", None),
            ("1e+ ", 3, "a digit", Some(b' ')),
            ("[", 1, "a value", None),
            ("[1,]", 3, "a value", Some(b']')),
            ("[,1]", 1, "a value", Some(b',')),
            ("[1 2]", 3, "',' or ']'", Some(b'2')),
            ("[1}", 2, "',' or ']'", Some(b'}')),
            ("[1", 2, "',' or ']'", None),
            ("{", 1, "a member's name in quotes", None),
            ("{a:1}", 1, "a member's name in quotes", Some(b'a')),
            ("{\"a\":1,}", 7, "a member's name in quotes", Some(b'}')),
            ("{\"a\":1,,", 7, "a member's name in quotes", Some(b',')),
            ("{\"a\" 1}", 5, "':'", Some(b'1')),
            ("{\"a\"", 4, "':'", None),
            ("{\"a\":}", 5, "a value", Some(b'}')),
            ("{\"a\":1 \"b\":2}", 7, "',' or '}'", Some(b'"')),
            ("{\"a\":1]", 6, "',' or '}'", Some(b']')),
            ("{\"a\":[1}", 7, "',' or ']'", Some(b'}')),
            ("\"abc", 4, "a character of a text, or its closing quote", None),
            ("\"a\nb\"", 2, "a character of a text, or its closing quote", Some(b'\n')),
            ("{\"a\tb\":1}", 3, "a character of a text, or its closing quote", Some(b'\t')),
            ("\"a\\x\"", 3, "an escape", Some(b'x')),
            ("\"\\", 2, "an escape", None),
            ("\"\\u12x4\"", 5, "four hexadecimal digits", Some(b'x')),
            ("\"\\u12", 5, "four hexadecimal digits", None),
            ("\"\\u\"", 3, "four hexadecimal digits", Some(b'"')),
        ];
        for &(text, offset, expected, found) in table {
            let error = SyntaxError { offset, expected, found };
            assert_eq!(judge(text.as_bytes()), Err(error), "{text}");
            assert_eq!(walk(text.as_bytes()), Err(error), "stepping into {text}");
            assert_eq!(members(text.as_bytes(), &[b"a"]).map(|_| ()), Err(error), "members of {text}");
        }
    }

    #[test]
    fn an_error_reads_as_a_sentence() {
        let said = |text: &str| judge(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(said("[1 2]"), "expected ',' or ']' at byte 3, found '2'");
        assert_eq!(said("\""), "expected a character of a text, or its closing quote at byte 1, found the end of the text");
        assert_eq!(said("\u{feff}"), "expected a value at byte 0, found byte 0xef");
        assert_eq!(said("\"\n\""), "expected a character of a text, or its closing quote at byte 1, found byte 0x0a");
    }

    #[test]
    fn offsets_behind_a_value_let_a_caller_read_on() {
        let mut reader = Reader::new(b" [1] 22 \"c\"");
        assert_eq!((reader.value(), reader.offset()), (Ok(Raw::Array(b"[1]")), 4));
        assert_eq!((reader.value(), reader.offset()), (Ok(Raw::Number(b"22")), 7));
        reader.white_space();
        assert_eq!(reader.offset(), 8);
        assert!(reader.enter_object().is_none() && reader.enter_array().is_none());
        assert!(reader.value().unwrap().as_text().unwrap().equals(b"c"));
        assert_eq!(reader.end(), Ok(()));
    }

    #[test]
    fn invalid_utf8_is_found_at_its_first_byte() {
        assert_eq!(first_invalid_utf8("{\"é\":\"\u{10ffff}\"}".as_bytes()), None);
        for (bytes, at) in [(&b"\xff"[..], 0), (b"ab\x80", 2), (b"a\xc3", 1), (b"\xc3\xa9\xed\xa0\x80", 2), (b"\xc0\x80", 0), (b"ab\xf4\x90\x80\x80", 2)] {
            assert_eq!(first_invalid_utf8(bytes), Some(at));
        }
    }
}

mod depth {
    use super::*;

    /// Brackets of `kinds` (true: an object), opened, filled and closed.
    fn nested(kinds: impl Iterator<Item = bool> + Clone) -> String {
        let opened: String = kinds.clone().map(|object| if object { "{\"k\":" } else { "[" }).collect();
        let closed: String = kinds.collect::<Vec<_>>().into_iter().rev().map(|object| if object { '}' } else { ']' }).collect();
        format!("{opened}0{closed}")
    }

    fn mixed(depth: usize) -> impl Iterator<Item = bool> + Clone {
        // Thue and Morse's sequence: no stretch of it repeats twice, so a bit out of place shows.
        (0..depth).map(|level| level.count_ones() % 2 == 1)
    }

    #[test]
    fn a_hundred_thousand_levels_are_judged() {
        const DEPTH: usize = 100_000;
        for text in [nested((0..DEPTH).map(|_| false)), nested((0..DEPTH).map(|_| true)), nested(mixed(DEPTH))] {
            assert_eq!(judge(text.as_bytes()), Ok(()));
            // Broken in the middle of the way down, at the bottom, in the middle of the way up, at the very end.
            let middle = text.find('0').unwrap();
            for at in [middle / 2, middle, middle + DEPTH / 2, text.len() - 1] {
                let (broken, mut other) = (text.as_bytes()[at], text.clone().into_bytes());
                other[at] = match broken {
                    b']' => b'}',
                    b'}' => b']',
                    _ => b'!',
                };
                assert_eq!(judge(&other).unwrap_err().offset, at);
                let cut = judge(&text.as_bytes()[..at]).unwrap_err();
                assert!(cut.found.is_none() && cut.offset == at);
            }
            assert_eq!(judge(format!("{text}]").as_bytes()).unwrap_err().offset, text.len());
        }
    }

    #[test]
    fn a_hundred_thousand_levels_are_skipped_in_a_member_nobody_wants() {
        let deep = nested(mixed(100_000));
        let text = format!("{{\"a\":1,\"deep\":{deep},\"b\":{deep}}}");
        let [a, b] = members(text.as_bytes(), &[b"a", b"b"]).unwrap().unwrap();
        assert_eq!(a, Some(Raw::Number(b"1")));
        assert!(matches!(b, Some(Raw::Array(span) | Raw::Object(span)) if span == deep.as_bytes()));
        assert!(members(&text.as_bytes()[..text.len() - 2], &[b"a", b"b"]).is_err());
    }

    #[test]
    fn a_wrong_bracket_is_found_at_every_level_around_the_word_sizes() {
        for depth in [1, 2, 62, 63, 64, 65, 66, 127, 128, 129, 130, 191, 192, 193, 256, 257] {
            for flip in [false, true] {
                let text = nested(mixed(depth).map(|object| object != flip));
                assert_eq!(judge(text.as_bytes()), Ok(()), "{depth}");
                for at in text.len() - depth..text.len() {
                    let mut wrong = text.clone().into_bytes();
                    wrong[at] ^= b']' ^ b'}';
                    assert_eq!(judge(&wrong).map_err(|error| error.offset), Err(at), "{depth} levels");
                }
            }
        }
    }

    #[test]
    fn levels_may_be_left_and_entered_again_across_the_word_sizes() {
        for depth in [61, 62, 63, 64, 65, 126, 127, 128, 129] {
            for below in 1..=4 {
                let child = nested(mixed(below));
                let frame = nested(mixed(depth));
                for siblings in [format!("[{child},{child},{child}]"), format!("{{\"a\":{child},\"b\":{child},\"c\":{child}}}")] {
                    let text = frame.replace('0', &siblings);
                    assert_eq!(judge(text.as_bytes()), Ok(()), "{depth} and {below}");
                    for (at, _) in text.match_indices([']', '}']) {
                        let mut wrong = text.clone().into_bytes();
                        wrong[at] ^= b']' ^ b'}';
                        assert_eq!(judge(&wrong).map_err(|error| error.offset), Err(at), "{depth} and {below}");
                    }
                }
            }
        }
    }
}

mod member {
    use super::*;

    fn spelled<'a, const N: usize>(text: &'a str, wanted: &[&[u8]; N]) -> [Option<Raw<'a>>; N] {
        members(text.as_bytes(), wanted).unwrap().unwrap()
    }

    #[test]
    fn of_repeated_members_the_last_counts() {
        assert_eq!(spelled(r#"{"a":1,"b":2,"a":3}"#, &[b"a", b"b"]), [Some(Raw::Number(b"3")), Some(Raw::Number(b"2"))]);
        assert_eq!(spelled(r#"{"a":{"a":1},"a":null}"#, &[b"a"]), [Some(Raw::Null)]);
        assert_eq!(spelled(r#"{"a":1,"\u0061":2}"#, &[b"a"]), [Some(Raw::Number(b"2"))]);
        assert_eq!(spelled(r#"{"\u0061":1,"a":2}"#, &[b"a"]), [Some(Raw::Number(b"2"))]);
        assert_eq!(spelled(r#"{"b":{"a":1}}"#, &[b"a"]), [None], "a member's member is another one");
    }

    #[test]
    fn members_are_found_in_any_order_and_number() {
        let wanted: [&[u8]; 3] = [b"a", b"b", b"c"];
        for order in ["abc", "acb", "bac", "bca", "cab", "cba", "xabc", "axbxc", "cxxba", "aabbcc", "abcabc", "cccba", "", "x", "b", "bx"] {
            let text: Vec<String> = order.char_indices().map(|(at, name)| format!("\"{name}\":{at}")).collect();
            let found = members(format!("{{{}}}", text.join(",")).as_bytes(), &wanted).unwrap().unwrap().map(|value| {
                value.map(|value| value.as_safe_integer().unwrap() as usize)
            });
            assert_eq!(found, ["a", "b", "c"].map(|name| order.rfind(name)), "{order}");
        }
    }

    #[test]
    fn a_name_is_compared_as_what_it_spells() {
        let text = r#"{"a\"b":1,"a\\b":2,"":3,"a\u0000":4,"\u00e9":5,"é2":6,"\/":7}"#;
        let found = spelled(text, &[b"a\"b", b"a\\b", b"", b"a\0", "é".as_bytes(), "é2".as_bytes(), b"/", b"a", b"a\\\"b", b"\\/"]);
        let expected = [Some(1), Some(2), Some(3), Some(4), Some(5), Some(6), Some(7), None, None, None];
        assert_eq!(found.map(|value| value.and_then(|value| value.as_safe_integer())), expected);
    }

    #[test]
    fn the_same_length_or_beginning_makes_no_name_equal() {
        for length in 0..40 {
            let name = "n".repeat(length);
            let text = format!("{{\"{name}\":true,\"{name}n\":1,\"\":null}}");
            let longer = format!("{name}n");
            let [exact, long] = spelled(&text, &[name.as_bytes(), longer.as_bytes()]);
            assert_eq!((exact, long), (Some(if length == 0 { Raw::Null } else { Raw::Bool(true) }), Some(Raw::Number(b"1"))));
            for at in 0..length {
                let mut other = name.clone().into_bytes();
                other[at] = b'm';
                assert_eq!(spelled(&text, &[&other]), [None], "{length} and {at}");
            }
        }
    }

    #[test]
    fn a_name_that_must_be_escaped_is_never_taken_for_raw_bytes() {
        for special in ["\"", "\\", "\n", "\u{1}", "\":1,\"", "\":", "\\\""] {
            for (before, after) in (0..=12).flat_map(|before| (0..=12).map(move |after| (before, after))) {
                let name = format!("{}{special}{}", "x".repeat(before), "y".repeat(after));
                let raw = format!("{{\"{name}\":1}}");
                let found = members(raw.as_bytes(), &[name.as_bytes()]);
                assert!(!matches!(found, Ok(Some([Some(_)]))), "{raw}");
                assert_eq!(found.map(|_| ()), judge(raw.as_bytes()), "{raw}");
                let escaped = format!("{{{}:1}}", serde_json::to_string(&name).unwrap());
                assert_eq!(spelled(&escaped, &[name.as_bytes()]), [Some(Raw::Number(b"1"))]);
            }
        }
    }

    #[test]
    fn white_space_around_a_name_changes_nothing() {
        for text in ["{\"a\":1,\"b\":2}", "{ \"a\" : 1 , \"b\" : 2 }", "{\n\t\"a\": 1,\n\t\"b\": 2\n}", "{\"a\"\n:1,\"b\"\r:2}"] {
            assert_eq!(spelled(text, &[b"a", b"b"]), [Some(Raw::Number(b"1")), Some(Raw::Number(b"2"))], "{text}");
        }
    }

    #[test]
    fn proto_is_an_ordinary_name() {
        let text = r#"{"__proto__":1,"constructor":2,"\u005f_proto__":3}"#;
        assert_eq!(spelled(text, &[b"__proto__", b"constructor"]), [Some(Raw::Number(b"3")), Some(Raw::Number(b"2"))]);
    }

    #[test]
    fn a_value_that_is_no_object_is_judged_all_the_same() {
        for text in ["null", "true", "1", "\"a\"", "[]", "[{\"a\":1}]"] {
            assert_eq!(members(text.as_bytes(), &[b"a"]), Ok(None), "{text}");
        }
        for text in ["nul", "[1,]", "\"a", "1 2", "[] {}", ""] {
            assert!(members(text.as_bytes(), &[b"a"]).is_err(), "{text}");
        }
        for text in ["{\"a\":1}x", "{\"a\":1,\"b\":}", "{\"a\":1}}", "{\"b\":[1,2}", "{\"a\":1"] {
            assert!(members(text.as_bytes(), &[b"a"]).is_err() && members(text.as_bytes(), &[]).is_err(), "{text}");
        }
        assert_eq!(members(b"{\"a\":1}", &[]), Ok(Some([])));
    }

    #[test]
    fn objects_in_a_list_are_read_one_by_one() {
        let mut reader = Reader::new(br#" [ {"a":1} , 5, {"a":2,"b":[3]} ] "#);
        let mut cursor = reader.enter_array().unwrap();
        let mut found = Vec::new();
        while reader.element(&mut cursor).unwrap() {
            found.push(reader.members(&[b"a"]).unwrap());
        }
        reader.end().unwrap();
        assert_eq!(found, [Some([Some(Raw::Number(b"1"))]), None, Some([Some(Raw::Number(b"2"))])]);
    }
}

mod number {
    use super::*;
    use journal_fold::json::{nearest_double, safe_integer, MAX_SAFE_INTEGER};

    #[test]
    fn a_whole_number_is_known_by_its_value_and_not_its_spelling() {
        for (spelled, expected) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("-0.0e5", Some(0)),
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("50e-1", Some(5)),
            ("0.5e1", Some(5)),
            ("5e0", Some(5)),
            ("5E+3", Some(5000)),
            ("1e-400", Some(0)),
            ("-1e-400", Some(0)),
            ("5.5", None),
            ("-5", None),
            ("0.1", None),
            ("5e-324", None),
            ("1e15", Some(1_000_000_000_000_000)),
            ("999999999999999", Some(999_999_999_999_999)),
            ("9999999999999999", None),
            ("9007199254740990", Some(9_007_199_254_740_990)),
            ("9007199254740991", Some(MAX_SAFE_INTEGER)),
            ("9007199254740991.0", Some(MAX_SAFE_INTEGER)),
            ("9007199254740991.4", Some(MAX_SAFE_INTEGER)),
            ("9007199254740991.49999999999999999999999999999", Some(MAX_SAFE_INTEGER)),
            ("9007199254740991.5", None),
            ("9007199254740990.5", Some(9_007_199_254_740_990)),
            ("9007199254740990.50000000000000000000000000001", Some(MAX_SAFE_INTEGER)),
            ("9007199254740992", None),
            ("9007199254740993", None),
            ("18446744073709551616", None),
            ("1e400", None),
            ("-1e400", None),
            ("900719925474099100000e-5", Some(MAX_SAFE_INTEGER)),
            ("1e308", None),
        ] {
            assert_eq!(safe_integer(spelled.as_bytes()), expected, "{spelled}");
            assert_eq!(value(spelled.as_bytes()).as_safe_integer(), expected, "{spelled}");
        }
        assert_eq!(value(b"\"5\"").as_safe_integer(), None, "a text is no number");
    }

    #[test]
    fn whole_numbers_of_every_length_are_read() {
        let (mut spelled, mut expected) = (String::new(), 0_u64);
        for digit in (1..=9).cycle().take(15) {
            spelled.push(char::from(b'0' + digit));
            expected = expected * 10 + u64::from(digit);
            assert_eq!(safe_integer(spelled.as_bytes()), Some(expected));
            // A digit that is none, at every place: the value is then the double's.
            for place in 1..spelled.len().saturating_sub(1) {
                for byte in [b'.', b'e', b'E'] {
                    let mut other = spelled.clone().into_bytes();
                    other[place] = byte;
                    let double = nearest_double(&other);
                    let whole = double.fract() == 0.0 && double <= MAX_SAFE_INTEGER as f64;
                    assert_eq!(safe_integer(&other), whole.then_some(double as u64), "{}", shown(&other));
                }
            }
        }
    }

    #[test]
    fn a_number_is_its_nearest_double_and_a_tie_goes_to_the_even_one() {
        let half = "9007199254740993"; // between 2^53 and 2^53+2
        let zeros = "0".repeat(600);
        for (spelled, expected) in [
            (half.to_owned(), 9007199254740992.0),
            (format!("{half}.{zeros}"), 9007199254740992.0),
            (format!("{half}.{zeros}1"), 9007199254740994.0),
            ("9007199254740995".to_owned(), 9007199254740996.0),
            (format!("9007199254740994.{}", "9".repeat(600)), 9007199254740994.0),
            (format!("1{zeros}e-600"), 1.0),
            (format!("0.{zeros}1e601"), 1.0),
            ("0.1".to_owned(), 0.1),
            (format!("0.1{zeros}"), 0.1),
            ("2.2250738585072011e-308".to_owned(), 2.225073858507201e-308),
            ("2.4703282292062327208e-324".to_owned(), 0.0), // just below half of the smallest
            ("2.4703282292062328e-324".to_owned(), 5e-324),
            ("1.7976931348623158e308".to_owned(), f64::MAX),
            ("1.7976931348623159e308".to_owned(), f64::INFINITY),
            ("1e400".to_owned(), f64::INFINITY),
            ("-1e400".to_owned(), f64::NEG_INFINITY),
            (format!("1{zeros}"), f64::INFINITY),
            ("1e-400".to_owned(), 0.0),
            ("0e400".to_owned(), 0.0),
        ] {
            assert!(accepted(&spelled));
            assert_eq!(nearest_double(spelled.as_bytes()), expected, "{}", shown(spelled.as_bytes()));
        }
        assert!(nearest_double(b"-0").is_sign_negative() && nearest_double(b"-1e-400").is_sign_negative());
    }

    /// A conversion that keeps its exponent in a few digits gives 0 and an infinity here.
    #[test]
    fn digits_and_exponent_of_any_size_balance() {
        for zeros in [60_000, 70_000, 700_000] {
            let many = "0".repeat(zeros);
            for (spelled, expected) in [
                (format!("0.{many}1e{}", zeros + 1), 1.0),
                (format!("-0.{many}15e{}", zeros + 1), -1.5),
                (format!("1{many}e-{zeros}"), 1.0),
                (format!("12{many}.5e-{zeros}"), 12.0),
                (format!("9007199254740993{many}E-{zeros}"), 9007199254740992.0),
                (format!("9007199254740993{many}1E-{}", zeros + 1), 9007199254740994.0),
                (format!("9007199254740993.{many}1"), 9007199254740994.0),
                (format!("{}e-{zeros}", "3".repeat(zeros)), 1.0 / 3.0),
                (format!("0.{many}1e+{}", zeros + 401), f64::INFINITY),
                (format!("0.{many}1e{}", zeros - 399), 0.0),
                (format!("1{many}e-{}", zeros + 400), 0.0),
                (format!("1e{many}5"), 1e5),
                (format!("1e-{many}5"), 1e-5),
                (format!("0.{many}e{many}7"), 0.0),
                (format!("1e{}", "9".repeat(zeros)), f64::INFINITY),
                (format!("-1e-{}", "9".repeat(zeros)), 0.0),
                (format!("0.{many}e{}", "9".repeat(zeros)), 0.0),
            ] {
                assert!(accepted(&spelled));
                assert_eq!(nearest_double(spelled.as_bytes()), expected, "{zeros} zeros, {}", shown(spelled.as_bytes()));
            }
        }
    }
}

mod text {
    use super::*;
    use journal_fold::json::write_text;

    fn written(wtf8: &[u8]) -> String {
        let mut out = Vec::new();
        write_text(&mut out, wtf8);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn unpaired_surrogates_are_kept_and_written_back_as_escapes() {
        for (spelled, wtf8, again) in [
            (r#""\ud800""#, &b"\xed\xa0\x80"[..], r#""\ud800""#),
            (r#""\uDBFF""#, b"\xed\xaf\xbf", r#""\udbff""#),
            (r#""\uDc00""#, b"\xed\xb0\x80", r#""\udc00""#),
            (r#""\udfff""#, b"\xed\xbf\xbf", r#""\udfff""#),
            (r#""\udc00\ud800""#, b"\xed\xb0\x80\xed\xa0\x80", r#""\udc00\ud800""#),
            (r#""\ud800\ud800\udc00""#, b"\xed\xa0\x80\xf0\x90\x80\x80", "\"\\ud800\u{10000}\""),
            (r#""\ud800\udc00\udc00""#, b"\xf0\x90\x80\x80\xed\xb0\x80", "\"\u{10000}\\udc00\""),
            (r#""\ud800x\udc00""#, b"\xed\xa0\x80x\xed\xb0\x80", r#""\ud800x\udc00""#),
            (r#""\ud800\n""#, b"\xed\xa0\x80\n", r#""\ud800\n""#),
            (r#""\ud800\\udc00""#, b"\xed\xa0\x80\\udc00", r#""\ud800\\udc00""#),
            (r#""\ud800\u0041""#, b"\xed\xa0\x80A", r#""\ud800A""#),
            (r#""a\ud83dé""#, b"a\xed\xa0\xbd\xc3\xa9", r#""a\ud83dé""#),
        ] {
            assert_eq!(text_of(spelled), wtf8, "{spelled}");
            assert_eq!(written(wtf8), again);
        }
    }

    #[test]
    fn the_two_halves_of_a_character_are_joined() {
        for code in (0x1_0000..=0x10_ffff_u32).step_by(0xfd).chain([0x1_0000, 0x1_f600, 0x10_ffff]) {
            let character = char::from_u32(code).unwrap();
            let [high, low] = *character.encode_utf16(&mut [0; 2]) else { panic!("two units") };
            assert_eq!(text_of(&format!("\"\\u{high:04x}\\u{low:04X}\"")), character.to_string().as_bytes());
            assert_eq!(written(character.to_string().as_bytes()), format!("\"{character}\""));
        }
    }

    #[test]
    fn all_of_latin_1_is_spelled_as_stringify_spells_it() {
        let all: String = ('\0'..='\u{ff}').collect();
        let latin: String = ('\u{a0}'..='\u{ff}').collect();
        let expected = concat!(
            r#""\u0000\u0001\u0002\u0003\u0004\u0005\u0006\u0007\b\t\n\u000b\f\r\u000e\u000f"#,
            r#"\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017\u0018\u0019\u001a\u001b\u001c\u001d\u001e\u001f"#,
            r##" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~"##,
            "\u{7f}\u{80}\u{81}\u{82}\u{83}\u{84}\u{85}\u{86}\u{87}\u{88}\u{89}\u{8a}\u{8b}\u{8c}\u{8d}\u{8e}\u{8f}",
            "\u{90}\u{91}\u{92}\u{93}\u{94}\u{95}\u{96}\u{97}\u{98}\u{99}\u{9a}\u{9b}\u{9c}\u{9d}\u{9e}\u{9f}",
        );
        assert_eq!(written(all.as_bytes()), format!("{expected}{latin}\""));
    }

    #[test]
    fn everything_above_is_left_as_it_is() {
        for character in ('\u{100}'..='\u{ffff}').chain(['\u{10000}', '\u{2f800}', '\u{10ffff}']) {
            assert_eq!(written(character.to_string().as_bytes()), format!("\"{character}\""));
        }
        // These begin with the byte that begins surrogates.
        let hangul = "\u{d000}\u{d7a3}\u{d7ff}";
        assert_eq!(written(format!("{hangul}\u{2028}\u{2029}\u{fffd}").as_bytes()), format!("\"{hangul}\u{2028}\u{2029}\u{fffd}\""));
    }

    #[test]
    fn every_place_of_a_text_can_hold_what_must_be_escaped() {
        let specials: [(&[u8], &str); 8] = [
            (b"\"", "\\\""),
            (b"\\", "\\\\"),
            (b"\0", "\\u0000"),
            (b"\x1f", "\\u001f"),
            (b"\n", "\\n"),
            (b"\xed\xa0\x80", "\\ud800"),
            (b"\xed\xbf\xbf", "\\udfff"),
            (b"\xed\x9f\xbf", "\u{d7ff}"),
        ];
        for filler in ["a", " ", "!", "#", "[", "]", "\u{7f}", "é", "\u{80}", "\u{bf}", "한", "\u{10ffff}"] {
            for before in 0..=20 {
                for after in 0..=20 {
                    let (left, right) = (filler.repeat(before), filler.repeat(after));
                    for (special, escape) in specials {
                        let text = [left.as_bytes(), special, right.as_bytes()].concat();
                        assert_eq!(written(&text), format!("\"{left}{escape}{right}\""));
                        assert_eq!(text_of(&written(&text)), text);
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_ends_at_its_first_special_byte_wherever_that_stands() {
        // Every ordinary byte around it, of UTF-8 or not: a wide comparison must not take one for another.
        let fillers = (0x20..=0xff_u8).filter(|byte| !matches!(byte, b'"' | b'\\'));
        for filler in fillers {
            for length in 0..=24 {
                let body = vec![filler; length];
                let text = [b"\"", &body[..], b"\""].concat();
                assert_eq!(value(&text).as_text().unwrap().plain(), Some(&body[..]), "{filler:#04x}, {length}");
                assert_eq!(judge(&text[..=length]).map_err(|error| (error.offset, error.found)), Err((length + 1, None)));
                for at in 0..length.min(21) {
                    let mut text = text.clone();
                    for control in [0x00, 0x01, 0x1f] {
                        text[at + 1] = control;
                        assert_eq!(judge(&text).map_err(|error| (error.offset, error.found)), Err((at + 1, Some(control))), "{filler:#04x}, {length}, {at}");
                    }
                    text[at + 1] = b'"';
                    let mut reader = Reader::new(&text);
                    assert_eq!(reader.value().unwrap().as_text().unwrap().plain(), Some(&body[..at]));
                    assert_eq!(reader.offset(), at + 2);
                    text[at + 1] = b'\\';
                    if text[at + 2] == b'"' && at + 1 == length {
                        assert_eq!(judge(&text).map_err(|error| (error.offset, error.found)), Err((length + 2, None)));
                    }
                    text[at + 2] = b'/';
                    if at + 1 < length {
                        let read = value(&text).as_text().unwrap();
                        assert_eq!(read.plain(), None);
                        assert_eq!(read.to_wtf8(), [&body[..at], b"/", &body[at + 2..]].concat());
                    }
                }
            }
        }
    }

    #[test]
    fn neighbours_of_special_bytes_are_ordinary_behind_special_ones() {
        // A borrow out of a true hit must not hide what stands before it or show what does not stand there.
        for first in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xa2, 0xdc, 0xff] {
            for second in [b'"', b'\\', 0x00, 0x1f, b' ', b'!', b'#', b'[', b']', 0x80, 0xa2, 0xff] {
                for third in [b'"', 0x00, b' ', b'!', b'#', b'[', b']', 0x80] {
                    for before in 0..20 {
                        let body = [&vec![first; before][..], &[second, third, first, b'"', b' ', b' ', b' ', b' ', b' ', b' ', b' ', b' ']].concat();
                        let end = body.iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\').unwrap();
                        let text = [b"\"", &body[..]].concat();
                        let read = Reader::new(&text).value();
                        match body[end] {
                            b'"' => assert_eq!(read.unwrap().as_text().unwrap().plain(), Some(&body[..end])),
                            b'\\' => {
                                if third != b'"' {
                                    assert_eq!(read.map_err(|error| error.offset), Err(end + 2), "no escape");
                                }
                            }
                            control => assert_eq!(read.map_err(|error| (error.offset, error.found)), Err((end + 1, Some(control)))),
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_text_knows_what_it_equals() {
        let raw = |json: &'static str| value(json.as_bytes()).as_text().unwrap();
        assert!(raw("\"\"").is_empty() && !raw(r#""\u0000""#).is_empty());
        assert!(raw("\"\"").equals(b"") && !raw("\"\"").equals(b"a") && !raw("\"a\"").equals(b""));
        assert!(raw(r#""\u0000""#).equals(b"\0") && raw(r#""\/""#).equals(b"/") && raw(r#""\ud800""#).equals(b"\xed\xa0\x80"));
        assert!(raw(r#""\ud83d\ude00""#).equals("😀".as_bytes()) && !raw(r#""\ud83d\ude00""#).equals(b"\xed\xa0\xbd\xed\xb8\x80"));
        let mut out = b"<".to_vec();
        raw("\"é\"").append_to(&mut out);
        raw(r#""\u00e9""#).append_to(&mut out);
        assert_eq!(out, "<éé".as_bytes());
    }
}

mod writer {
    use super::*;
    use journal_fold::json::{nearest_double, write_double, write_integer, Writer};

    fn double(value: f64) -> String {
        let mut out = Vec::new();
        write_double(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn doubles_are_spelled_as_ecmascript_spells_them() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (100.0, "100"),
            (0.5, "0.5"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1.0 / 3.0, "0.3333333333333333"),
            (4.35, "4.35"),
            (1e20, "100000000000000000000"),
            (999999999999999900000.0, "999999999999999900000"),
            (1e21, "1e+21"),
            (-1e21, "-1e+21"),
            (1e22, "1e+22"),
            (1e23, "1e+23"),
            (1e300, "1e+300"),
            (1e-6, "0.000001"),
            (0.000001234, "0.000001234"),
            (1e-7, "1e-7"),
            (1.5e-7, "1.5e-7"),
            (123456789012345680000.0, "123456789012345680000"),
            (1.2345678901234568e29, "1.2345678901234568e+29"),
            (9007199254740993.0, "9007199254740992"),
            (5e-324, "5e-324"),
            (2.2250738585072014e-308, "2.2250738585072014e-308"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::INFINITY, "null"),
            (f64::NEG_INFINITY, "null"),
            (f64::NAN, "null"),
        ] {
            assert_eq!(double(value), expected);
            if value.is_finite() {
                assert_eq!(nearest_double(expected.as_bytes()), value);
            }
        }
    }

    #[test]
    fn whole_numbers_are_written_in_decimal() {
        for value in (0..20).map(|power| 10_u64.pow(power)).flat_map(|power| [power - 1, power, power + 1]).chain([u64::MAX, u64::MAX - 1]) {
            let mut out = b"x".to_vec();
            write_integer(&mut out, value);
            assert_eq!(out, format!("x{value}").as_bytes());
        }
    }

    #[test]
    fn commas_and_colons_fall_into_place() {
        let mut writer = Writer::new();
        writer.open_object();
        writer.name(b"a").open_array().integer(1).text(b"x").null().boolean(true).boolean(false).double(1.5).open_array().close_array();
        writer.open_object().close_object().raw(b"{\"raw\": [ ]}").decimal_text(u64::MAX).close_array();
        writer.name(b"{[:").text(b"{[:").name(b"").text(b"").name(b"b\n").open_object().name(b"c").integer(0).close_object().close_object();
        let expected = concat!(
            r#"{"a":[1,"x",null,true,false,1.5,[],{},{"raw": [ ]},"18446744073709551615"],"#,
            r#""{[:":"{[:","":"","b\n":{"c":0}}"#,
        );
        assert_eq!(writer.as_bytes(), expected.as_bytes());
        assert!(accepted(writer.into_bytes()));
        let mut list = Writer::new();
        list.open_array().text(b"[").text(b"{").text(b":").integer(1).close_array();
        assert_eq!(list.as_bytes(), br#"["[","{",":",1]"#);
    }
}

mod property {
    use super::*;
    use journal_fold::json::{nearest_double, write_double, write_text};
    use proptest::prelude::*;
    use proptest::sample::{select, Index};

    /// A value as ECMA-262 sees it: texts are UTF-16 code units, and a repeated member overwrites.
    #[derive(Debug, Clone, PartialEq)]
    enum Tree {
        Null,
        Bool(bool),
        Number(f64),
        Text(Vec<u16>),
        Array(Vec<Tree>),
        Object(Vec<(Vec<u16>, Tree)>),
    }

    fn set(members: &mut Vec<(Vec<u16>, Tree)>, name: Vec<u16>, value: Tree) {
        match members.iter_mut().find(|(other, _)| *other == name) {
            Some((_, old)) => *old = value,
            None => members.push((name, value)),
        }
    }

    /// The reference: JSON's grammar written down once more, as plainly as can be, over code units.
    struct Naive(Vec<u16>, usize);

    impl Naive {
        fn parse(text: &str) -> Option<Tree> {
            let mut naive = Naive(text.encode_utf16().collect(), 0);
            let tree = naive.value()?;
            naive.white();
            (naive.1 == naive.0.len()).then_some(tree)
        }
        fn peek(&self) -> Option<char> {
            self.0.get(self.1).map(|&unit| char::from_u32(u32::from(unit)).unwrap_or('\u{fffd}'))
        }
        fn eat(&mut self, wanted: char) -> Option<()> {
            (self.peek() == Some(wanted)).then(|| self.1 += 1)
        }
        fn white(&mut self) {
            while matches!(self.peek(), Some(' ' | '\t' | '\n' | '\r')) {
                self.1 += 1;
            }
        }
        fn digits(&mut self) -> Option<()> {
            let from = self.1;
            while self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
                self.1 += 1;
            }
            (self.1 > from).then_some(())
        }
        fn value(&mut self) -> Option<Tree> {
            self.white();
            match self.peek()? {
                '"' => self.text().map(Tree::Text),
                '[' => {
                    self.eat('[')?;
                    let mut elements = Vec::new();
                    self.white();
                    if self.eat(']').is_some() {
                        return Some(Tree::Array(elements));
                    }
                    loop {
                        elements.push(self.value()?);
                        self.white();
                        if self.eat(']').is_some() {
                            return Some(Tree::Array(elements));
                        }
                        self.eat(',')?;
                    }
                }
                '{' => {
                    self.eat('{')?;
                    let mut members = Vec::new();
                    self.white();
                    if self.eat('}').is_some() {
                        return Some(Tree::Object(members));
                    }
                    loop {
                        self.white();
                        let name = self.text()?;
                        self.white();
                        self.eat(':')?;
                        let value = self.value()?;
                        set(&mut members, name, value);
                        self.white();
                        if self.eat('}').is_some() {
                            return Some(Tree::Object(members));
                        }
                        self.eat(',')?;
                    }
                }
                'n' => "null".chars().try_for_each(|letter| self.eat(letter)).map(|()| Tree::Null),
                't' => "true".chars().try_for_each(|letter| self.eat(letter)).map(|()| Tree::Bool(true)),
                'f' => "false".chars().try_for_each(|letter| self.eat(letter)).map(|()| Tree::Bool(false)),
                _ => {
                    let from = self.1;
                    let _ = self.eat('-');
                    if self.eat('0').is_none() {
                        self.digits()?;
                    }
                    if self.eat('.').is_some() {
                        self.digits()?;
                    }
                    if self.eat('e').or_else(|| self.eat('E')).is_some() {
                        let _ = self.eat('+').or_else(|| self.eat('-'));
                        self.digits()?;
                    }
                    String::from_utf16(&self.0[from..self.1]).ok()?.parse().ok().map(Tree::Number)
                }
            }
        }
        fn text(&mut self) -> Option<Vec<u16>> {
            self.eat('"')?;
            let mut units = Vec::new();
            loop {
                let unit = *self.0.get(self.1)?;
                self.1 += 1;
                match char::from_u32(u32::from(unit)) {
                    Some('"') => return Some(units),
                    Some('\0'..='\x1f') => return None,
                    Some('\\') => {
                        let letter = self.peek()?;
                        self.1 += 1;
                        units.push(match letter {
                            '"' | '\\' | '/' => letter as u16,
                            'b' => 8,
                            'f' => 12,
                            'n' => 10,
                            'r' => 13,
                            't' => 9,
                            'u' => {
                                let mut code = 0;
                                for _ in 0..4 {
                                    code = code * 16 + self.peek()?.to_digit(16)?;
                                    self.1 += 1;
                                }
                                code as u16
                            }
                            _ => return None,
                        });
                    }
                    _ => units.push(unit),
                }
            }
        }
    }

    /// What the reader says a value is.
    fn tree(raw: Raw) -> Tree {
        match raw {
            Raw::Null => Tree::Null,
            Raw::Bool(value) => Tree::Bool(value),
            Raw::Number(spelled) => Tree::Number(nearest_double(spelled)),
            Raw::Text(text) => Tree::Text(units(&text.to_wtf8())),
            Raw::Array(span) => {
                let mut reader = Reader::new(span);
                let mut cursor = reader.enter_array().unwrap();
                let mut elements = Vec::new();
                while reader.element(&mut cursor).unwrap() {
                    elements.push(tree(reader.value().unwrap()));
                }
                reader.end().unwrap();
                Tree::Array(elements)
            }
            Raw::Object(span) => {
                let mut reader = Reader::new(span);
                let mut cursor = reader.enter_object().unwrap();
                let mut members = Vec::new();
                while let Some(name) = reader.member(&mut cursor).unwrap() {
                    set(&mut members, units(&name.to_wtf8()), tree(reader.value().unwrap()));
                }
                reader.end().unwrap();
                Tree::Object(members)
            }
        }
    }

    /// WTF-8 to UTF-16.
    fn units(wtf8: &[u8]) -> Vec<u16> {
        let mut out = Vec::new();
        let mut bytes = wtf8.iter().map(|&byte| u32::from(byte));
        while let Some(first) = bytes.next() {
            let more = [0xc0, 0xe0, 0xf0].iter().filter(|&&limit| first >= limit).count();
            let mut code = if more == 0 { first } else { first & (0x3f >> more) };
            for _ in 0..more {
                code = (code << 6) | (bytes.next().unwrap() & 0x3f);
            }
            match code.checked_sub(0x1_0000) {
                None => out.push(code as u16),
                Some(above) => out.extend([0xd800 | (above >> 10) as u16, 0xdc00 | (above & 0x3ff) as u16]),
            }
        }
        out
    }

    /// UTF-16 to WTF-8.
    fn wtf8(units: &[u16]) -> Vec<u8> {
        let mut out = Vec::new();
        for unit in char::decode_utf16(units.iter().copied()) {
            match unit {
                Ok(character) => out.extend(character.to_string().bytes()),
                Err(lone) => {
                    let unit = lone.unpaired_surrogate();
                    out.extend([0xed, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]);
                }
            }
        }
        out
    }

    fn white() -> impl Strategy<Value = &'static str> {
        select(vec!["", "", "", "", " ", "\n", "\t \r\n"])
    }

    /// Texts in quotes, spelled in all the ways there are; few enough names that they repeat.
    fn spelled_text() -> impl Strategy<Value = String> {
        let pieces = select(vec![
            "a", "b", "\\u0061", "\\u0062", "__proto__", "\\u005f_proto__", "é", "\\u00E9", "\\n", "\\\\", "\\\"", "\\/", "\\ud83d", "\\ude00", "😀",
            "\\uD800", "한", "\u{d7ff}", "\u{2028}", "\\u0000", "a long stretch without any escape", " ", "{", "]", ":", ",", "\u{7f}", "\u{10ffff}",
        ]);
        prop_oneof![
            select(vec!["\"a\"", "\"b\"", "\"\\u0061\"", "\"ab\"", "\"\"", "\"__proto__\"", "\"\\ud800\"", "\"é\""]).prop_map(str::to_owned),
            prop::collection::vec(pieces, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat())),
        ]
    }

    fn scalar() -> impl Strategy<Value = String> {
        prop_oneof![
            select(vec![
                "null", "true", "false", "0", "-0", "5.0", "50e-1", "1e-400", "1e400", "-1e400", "9007199254740991.4", "9007199254740993", "1E+2", "0.1",
                "1767225600123", "123456789012345678901234567890", "5e-324", "-12.5e-3",
            ])
            .prop_map(str::to_owned),
            any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| format!("{value:e}")),
            spelled_text(),
        ]
    }

    fn json() -> impl Strategy<Value = String> {
        scalar().prop_recursive(6, 48, 6, |inner| {
            let element = (white(), inner.clone(), white()).prop_map(|(before, value, after)| format!("{before}{value}{after}")).boxed();
            let member = (white(), spelled_text(), white(), element.clone()).prop_map(|(before, name, after, value)| format!("{before}{name}{after}:{value}"));
            prop_oneof![
                (prop::collection::vec(element, 0..6), white()).prop_map(|(all, inside)| if all.is_empty() { format!("[{inside}]") } else { format!("[{}]", all.join(",")) }),
                (prop::collection::vec(member, 0..8), white()).prop_map(|(all, inside)| if all.is_empty() { format!("{{{inside}}}") } else { format!("{{{}}}", all.join(",")) }),
            ]
        })
    }

    #[derive(Debug, Clone)]
    enum Change {
        Set(Index, u8),
        Insert(Index, u8),
        Remove(Index),
        Cut(Index),
        Swap(Index, Index),
    }

    fn byte() -> impl Strategy<Value = u8> {
        let telling = b"{}[]{}[],:\"\"\\\\0123456789-+.eEtrufalsn /bu\0\x1f\x7f\n\t\xc3\xa9\xed\xa0\xf0\xff".to_vec();
        prop_oneof![4 => select(telling), 1 => any::<u8>()]
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        let change = prop_oneof![
            3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Set(at, byte)),
            3 => (any::<Index>(), byte()).prop_map(|(at, byte)| Change::Insert(at, byte)),
            3 => any::<Index>().prop_map(Change::Remove),
            1 => any::<Index>().prop_map(Change::Cut),
            1 => (any::<Index>(), any::<Index>()).prop_map(|(one, other)| Change::Swap(one, other)),
        ];
        prop::collection::vec(change, 0..4)
    }

    fn changed(text: &str, changes: &[Change]) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for change in changes {
            let length = bytes.len();
            match change {
                Change::Insert(at, byte) => bytes.insert(at.index(length + 1), *byte),
                Change::Cut(at) => bytes.truncate(at.index(length + 1)),
                _ if length == 0 => {}
                Change::Set(at, byte) => bytes[at.index(length)] = *byte,
                Change::Remove(at) => drop(bytes.remove(at.index(length))),
                Change::Swap(one, other) => bytes.swap(one.index(length), other.index(length)),
            }
        }
        bytes
    }

    /// Whether serde_json is known to judge the text otherwise: an escape of a surrogate that may stand alone, or too deep.
    fn judged_otherwise(text: &[u8]) -> bool {
        let surrogate = text.windows(4).any(|four| matches!(four, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F']));
        surrogate || text.iter().filter(|&&byte| byte == b'[' || byte == b'{').count() > 127
    }

    const WANTED: [&[u8]; 6] = [b"a", b"b", b"", b"__proto__", b"\xed\xa0\x80", "é".as_bytes()];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn values_are_those_of_the_reference(text in json()) {
            let expected = Naive::parse(&text);
            prop_assert!(expected.is_some());
            prop_assert_eq!(Some(tree(value(text.as_bytes()))), expected);
        }

        #[test]
        fn the_verdict_on_broken_texts_is_that_of_the_reference_and_of_serde(text in json(), changes in changes()) {
            let bytes = changed(&text, &changes);
            let verdict = judge(&bytes);
            prop_assert_eq!(verdict, walk(&bytes), "skipped and stepped into");
            if let Ok(text) = core::str::from_utf8(&bytes) {
                prop_assert_eq!(verdict.is_ok(), Naive::parse(text).is_some());
                if !judged_otherwise(&bytes) {
                    prop_assert_eq!(verdict.is_ok(), serde_json::from_str::<serde_json::Value>(text).is_ok());
                }
            }
            if let Err(error) = verdict {
                prop_assert_eq!(error.found, bytes.get(error.offset).copied());
                // Whatever follows, what stands before the offset is where it goes wrong.
                if error.found.is_some() {
                    prop_assert_eq!(judge(&bytes[..=error.offset]), Err(error));
                }
            }
        }

        #[test]
        fn members_are_those_of_the_reference(text in json(), changes in changes()) {
            let bytes = changed(&text, &changes);
            let found = members(&bytes, &WANTED);
            prop_assert_eq!(found.map(|_| ()), judge(&bytes));
            if let (Ok(found), Ok(text)) = (found, core::str::from_utf8(&bytes)) {
                let expected = match Naive::parse(text) {
                    Some(Tree::Object(all)) => Some(WANTED.map(|name| all.iter().find(|(other, _)| *other == units(name)).map(|(_, value)| value.clone()))),
                    _ => None,
                };
                prop_assert_eq!(found.map(|found| found.map(|value| value.map(tree))), expected);
            }
        }

        #[test]
        fn what_follows_a_text_in_memory_is_never_read(text in json(), cut in any::<Index>(), after in prop::collection::vec(byte(), 0..24)) {
            let cut = cut.index(text.len() + 1);
            let alone = text.as_bytes()[..cut].to_vec();
            for after in [&text.as_bytes()[cut..], &after, b"\"}]}]}]}]}]"] {
                let page = [&alone[..], after].concat();
                prop_assert_eq!(judge(&page[..cut]), judge(&alone));
                prop_assert_eq!(members(&page[..cut], &WANTED), members(&alone, &WANTED));
            }
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(byte(), 0..64), any in prop::collection::vec(any::<u8>(), 0..64)) {
            for bytes in [bytes, any] {
                prop_assert_eq!(judge(&bytes), walk(&bytes));
                let _ = members(&bytes, &WANTED);
                for quoted in [[b"\"", &bytes[..], b"\""].concat(), [b"{\"a\":\"", &bytes[..], b"\"}"].concat()] {
                    if let Ok(Some([Some(Raw::Text(text)), ..])) = members(&quoted, &WANTED) {
                        let _ = text.to_wtf8();
                    }
                    let _ = judge(&quoted);
                }
                let mut out = Vec::new();
                write_text(&mut out, &bytes);
                prop_assert!(judge(&out).is_ok());
                let _ = nearest_double(&bytes);
            }
        }

        #[test]
        fn a_text_that_was_written_is_read_back(mut text in prop::collection::vec(prop_oneof![any::<u16>(), 0_u16..0x80, 0xd7f0_u16..0xe010], 0..40)) {
            let bytes = wtf8(&text);
            prop_assert_eq!(&units(&bytes), &text);
            let mut out = Vec::new();
            write_text(&mut out, &bytes);
            let written = String::from_utf8(out).unwrap();
            prop_assert_eq!(text_of(&written), bytes);
            text.retain(|unit| !(0xd800..0xe000).contains(unit));
            let plain = String::from_utf16(&text).unwrap();
            let mut out = Vec::new();
            write_text(&mut out, plain.as_bytes());
            prop_assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(&plain).unwrap());
        }

        #[test]
        fn a_double_that_was_written_is_read_back(bits in any::<u64>(), whole in any::<i64>()) {
            for value in [f64::from_bits(bits), whole as f64, whole as f64 / 1000.0] {
                let mut out = Vec::new();
                write_double(&mut out, value);
                prop_assert!(accepted(&out));
                if value.is_finite() {
                    prop_assert_eq!(nearest_double(&out), value);
                }
            }
        }
    }
}

/// Nicolas Seriot's JSONTestSuite, when it is there: `y_` is accepted, `n_` refused, and `i_` judged as `JSON.parse` judges it.
#[test]
fn the_files_of_json_test_suite_get_the_verdict_of_json_parse() {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data/json-test-suite/test_parsing");
    let folder = std::env::var("JSON_TEST_SUITE").unwrap_or_else(|_| beside.to_owned());
    let Ok(files) = std::fs::read_dir(&folder) else {
        println!("skipped: no JSONTestSuite at {folder}; JSON_TEST_SUITE may name its test_parsing folder");
        return;
    };
    let (mut judged, mut wrong) = (0, Vec::new());
    for file in files {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(&path).unwrap();
        // On the byte route, what is not UTF-8 is refused before it is read.
        let verdict = first_invalid_utf8(&bytes).is_none() && accepted(&bytes);
        let expected = match name.get(..2) {
            Some("y_") => true,
            Some("n_") => false,
            // Numbers beyond a double, unpaired surrogates, 500 levels: all accepted. A byte order mark is not.
            Some("i_") => core::str::from_utf8(&bytes).is_ok_and(|text| !text.starts_with('\u{feff}')),
            _ => continue,
        };
        judged += 1;
        if verdict != expected {
            wrong.push(name);
        }
    }
    assert!(judged > 300, "only {judged} files in {folder}");
    assert!(wrong.is_empty(), "judged otherwise: {wrong:?}");
}
