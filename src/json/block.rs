//! Whether a block of a text has a byte that ends a plain stretch: by a vector where the machine has one that safe code can reach, by words
//! elsewhere. Both say the same.

/// Bytes in a block.
pub(super) const BLOCK: usize = 32;

/// Whether a quote, a backslash or a control character is in `block`.
#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[inline(always)]
pub(super) fn has_special(block: &[u8; BLOCK]) -> bool {
    use core::arch::wasm32::{u8x16_eq, u8x16_lt, u8x16_splat, v128, v128_any_true, v128_or};
    let [one, two]: [v128; 2] = bytemuck::pod_read_unaligned(block);
    let special = |bytes| {
        let quote_or_backslash = v128_or(u8x16_eq(bytes, u8x16_splat(b'"')), u8x16_eq(bytes, u8x16_splat(b'\\')));
        v128_or(quote_or_backslash, u8x16_lt(bytes, u8x16_splat(0x20)))
    };
    v128_any_true(v128_or(special(one), special(two)))
}

/// Whether a quote, a backslash or a control character is in `block`.
#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[inline(always)]
pub(super) fn has_special(block: &[u8; BLOCK]) -> bool {
    block.as_chunks::<8>().0.iter().fold(0, |hits, word| hits | super::scan::specials(u64::from_le_bytes(*word))) != 0
}
