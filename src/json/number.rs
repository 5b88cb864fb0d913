//! Numbers: the nearest double of a spelling, and the whole numbers that a double holds exactly.

/// 2^53-1, the largest whole number that a double tells from its neighbours.
pub const MAX_SAFE_INTEGER: u64 = 9_007_199_254_740_991;

/// Up to this length Rust's conversion is right. It reads an exponent only until that exceeds 2^16, which is enough unless as
/// many digits stand before it: of `0.`, 700,000 zeros and `1e700001` it makes 0 instead of 1.
const LONGEST_AS_IT_STANDS: usize = 60_000;

/// The double nearest to a JSON number, ties to even; an infinity beyond the largest one.
///
/// `spelled` is a number as [`super::Reader`] judged it. Of anything else, nothing is promised but that it gives some double.
pub fn nearest_double(spelled: &[u8]) -> f64 {
    if spelled.len() > LONGEST_AS_IT_STANDS {
        return converted(&normalized(spelled));
    }
    converted(spelled)
}

fn converted(spelled: &[u8]) -> f64 {
    // Rust's own conversion rounds correctly for any number of digits, and JSON's grammar is a part of what it reads.
    core::str::from_utf8(spelled).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

/// The same number as `0.` and its digits, the first of them not 0, with the exponent that belongs to that.
#[cold]
fn normalized(spelled: &[u8]) -> Vec<u8> {
    let (sign, unsigned) = match spelled {
        [b'-', unsigned @ ..] => (&b"-"[..], unsigned),
        _ => (&b""[..], spelled),
    };
    let mut parts = unsigned.splitn(2, |byte| matches!(byte, b'e' | b'E'));
    let mut mantissa = parts.next().unwrap_or_default().splitn(2, |&byte| byte == b'.');
    let whole = mantissa.next().unwrap_or_default();
    let fraction = mantissa.next().unwrap_or_default();
    let zeros = whole.iter().chain(fraction).take_while(|&&digit| digit == b'0').count();
    // No text is so long that these meet their bounds, but an exponent may be.
    let exponent = exponent(parts.next().unwrap_or_default()).saturating_add_unsigned(whole.len() as u64).saturating_sub_unsigned(zeros as u64);
    let mut out = [sign, b"0."].concat();
    out.extend(whole.iter().chain(fraction).skip(zeros));
    // One 0 more changes nothing, and a thousand is as far out of a double's reach as anything beyond.
    out.extend_from_slice(format!("0e{}", exponent.clamp(-1000, 1000)).as_bytes());
    out
}

fn exponent(spelled: &[u8]) -> i64 {
    let (negative, digits) = match spelled {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let size = digits.iter().fold(0_i64, |size, digit| size.saturating_mul(10).saturating_add(i64::from(digit.wrapping_sub(b'0'))));
    if negative { size.saturating_neg() } else { size }
}

/// The whole number from 0 to 2^53-1 that a JSON number's nearest double is, if it is one. `-0` is 0.
///
/// This is `Number.isSafeInteger(x) && x >= 0` of the parsed number, whatever its spelling: `5.0` and `50e-1` are 5. Like
/// [`nearest_double`], it does not judge the spelling: `007` is 7 here, and no digits are 0.
#[inline]
pub fn safe_integer(spelled: &[u8]) -> Option<u64> {
    if spelled.len() > 15 {
        return safe_integer_of_double(spelled);
    }
    let mut value: u64 = 0;
    for &byte in spelled {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return safe_integer_of_double(spelled);
        }
        // Fifteen digits cannot overflow.
        value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
    }
    Some(value)
}

#[cold]
fn safe_integer_of_double(spelled: &[u8]) -> Option<u64> {
    let double = nearest_double(spelled);
    let whole = double as u64;
    (double >= 0.0 && whole <= MAX_SAFE_INTEGER && whole as f64 == double).then_some(whole)
}
