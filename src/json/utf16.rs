//! UTF-8 from UTF-16: hosts whose strings are UTF-16 copy them as they are faster than they encode them.

/// Appends the UTF-8 of `units`; `false` at an unpaired surrogate, which has none. What was appended by then is of no use.
pub fn append_utf8(units: &[u16], out: &mut Vec<u8>) -> bool {
    out.reserve(units.len().saturating_mul(3));
    let mut rest = units;
    while let Some((block, after)) = rest.split_first_chunk::<8>() {
        if block.iter().fold(0, |all, unit| all | unit) < 0x80 {
            out.extend_from_slice(&block.map(|unit| unit as u8));
            rest = after;
            continue;
        }
        // Characters up to the end of the block, a pair across it whole.
        let mut taken: usize = 0;
        while taken < block.len() {
            let Some(width) = append_one(rest.get(taken..).unwrap_or_default(), out) else { return false };
            taken = taken.saturating_add(width);
        }
        rest = rest.get(taken..).unwrap_or_default();
    }
    while !rest.is_empty() {
        let Some(width) = append_one(rest, out) else { return false };
        rest = rest.get(width..).unwrap_or_default();
    }
    true
}

/// Appends the first character of `units` and says how many units it took.
#[inline(always)]
fn append_one(units: &[u16], out: &mut Vec<u8>) -> Option<usize> {
    let first = *units.first()?;
    let tail = |shift: u32, code: u32| 0x80 | ((code >> shift) & 0x3f) as u8;
    let code = u32::from(first);
    match first {
        0..=0x7f => out.push(first as u8),
        0x80..=0x7ff => out.extend_from_slice(&[0xc0 | (code >> 6) as u8, tail(0, code)]),
        0xd800..=0xdbff => {
            let second = *units.get(1).filter(|unit| matches!(unit, 0xdc00..=0xdfff))?;
            let code = 0x1_0000_u32.wrapping_add((code & 0x3ff) << 10).wrapping_add(u32::from(second) & 0x3ff);
            out.extend_from_slice(&[0xf0 | (code >> 18) as u8, tail(12, code), tail(6, code), tail(0, code)]);
            return Some(2);
        }
        0xdc00..=0xdfff => return None,
        _ => out.extend_from_slice(&[0xe0 | (code >> 12) as u8, tail(6, code), tail(0, code)]),
    }
    Some(1)
}

#[cfg(test)]
mod tests {
    use super::append_utf8;

    fn encoded(units: &[u16]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        append_utf8(units, &mut out).then_some(out)
    }

    #[test]
    fn text_becomes_its_utf8_wherever_its_characters_lie() {
        for text in ["", "a", "größe", "注文\u{10ffff}", "\u{7f}\u{80}\u{7ff}\u{800}\u{ffff}\u{10000}"] {
            for before in 0..20 {
                for after in [0, 1, 7, 8, 30] {
                    let whole = format!("{}{text}{}", "x".repeat(before), "y".repeat(after));
                    let units: Vec<u16> = whole.encode_utf16().collect();
                    assert_eq!(encoded(&units), Some(whole.into_bytes()));
                }
            }
        }
    }

    #[test]
    fn an_unpaired_surrogate_is_refused_wherever_it_stands() {
        for lone in [&[0xd800][..], &[0xdc00], &[0xdfff, 0xd800], &[0xd83d, 0xd83d, 0xdca9]] {
            for before in 0..20 {
                for after in [0, 1, 9] {
                    let units = [&vec![0x61; before], lone, &vec![0x61; after]].concat();
                    assert_eq!(encoded(&units), None, "{units:x?}");
                }
            }
        }
    }
}
