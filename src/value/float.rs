//! Floating-point numbers as whole numbers.

/// The whole part of a number. Beyond the ends of `i64` it is the end; what is no number is 0.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is dropped on purpose, and `as` saturates")]
pub fn whole_part(number: f64) -> i64 {
    number as i64
}

/// The whole part of a number, within the ends of `u32`.
pub fn clamped(number: f64) -> u32 {
    u32::try_from(whole_part(number).clamp(0, u32::MAX.into())).expect("it is within the range")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_beyond_the_ends_is_the_end() {
        let parts = [1.9, -1.9, 1e300, f64::NEG_INFINITY, f64::NAN].map(whole_part);
        assert_eq!(parts, [1, -1, i64::MAX, i64::MIN, 0]);
        assert_eq!([-1.0, 2.9, 1e300].map(clamped), [0, 2, u32::MAX]);
    }
}
