//! "Did you mean": the word of a list that is nearest to a misspelt one.

/// The nearest of `candidates` to `word`, if one is near enough to be what was meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let chars: Vec<char> = word.chars().collect();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let limit = 1 + candidate.len().min(word.len()) / 4;
            Some((distance(&chars, candidate, limit)?, candidate))
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The hint for a misspelt word, for example `did you mean "become"?`; None: no candidate is near enough.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|near| format!("did you mean {near:?}?"))
}

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other; None: more than the limit. Most words
/// are far from each other, which shows after a few characters.
fn distance(a: &[char], b: &str, limit: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().collect();
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // The rows of the table for one character less, two less, and this one.
    let (mut above, mut far_above): (Vec<usize>, Vec<usize>) = ((0..=b.len()).collect(), vec![0; b.len() + 1]);
    let mut row = vec![0; b.len() + 1];
    for i in 1..=a.len() {
        row[0] = i;
        for j in 1..=b.len() {
            let cost = usize::from(a[i - 1] != b[j - 1]);
            row[j] = (above[j] + 1).min(row[j - 1] + 1).min(above[j - 1] + cost);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(far_above[j - 2] + 1);
            }
        }
        if row.iter().chain(&above).all(|edits| *edits > limit) {
            return None;
        }
        std::mem::swap(&mut far_above, &mut above);
        std::mem::swap(&mut above, &mut row);
    }
    Some(above[b.len()]).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::{did_you_mean, nearest};

    #[test]
    fn a_misspelt_word_finds_its_neighbour_and_a_strange_one_none() {
        let words = ["become", "become_user", "when", "register"];
        assert_eq!(nearest("becom", words), Some("become"));
        assert_eq!(nearest("wehn", words), Some("when"));
        assert_eq!(nearest("zebra", words), None);
        assert_eq!(nearest("xecmeo_usre", words), None, "four edits are too many for eleven characters");
        assert_eq!(nearest("bceome_usre", words), Some("become_user"));
        assert_eq!(nearest("", words), None);
        assert_eq!(did_you_mean("becom", words).as_deref(), Some("did you mean \"become\"?"));
        assert_eq!(did_you_mean("zebra", words), None);
    }
}
