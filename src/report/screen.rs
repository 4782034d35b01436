//! A terminal with finished lines above and a frame of a few lines at the bottom that is redrawn in place.

use std::io::{self, Write};

use console::{measure_text_width, truncate_str};

/// Rows and columns of the terminal behind standard output, as they are now.
pub(super) fn size() -> (usize, usize) {
    let (rows, columns) = console::Term::stdout().size();
    (usize::from(rows).max(1), usize::from(columns).max(1))
}

/// One write to the terminal changes both: what is above scrolls, the frame stays at the foot.
pub(super) struct Screen {
    out: Box<dyn Write + Send>,
    size: fn() -> (usize, usize),
    /// The lines that are on the terminal now.
    drawn: Vec<String>,
}

impl Screen {
    /// `size` is asked whenever something is drawn, so that a change of the terminal's size is seen.
    pub(super) fn new(out: Box<dyn Write + Send>, size: fn() -> (usize, usize)) -> Self {
        Screen { out, size, drawn: Vec::new() }
    }

    /// Rows and columns.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.size)()
    }

    pub(super) fn has_frame(&self) -> bool {
        !self.drawn.is_empty()
    }

    /// Writes `text` (lines with their newlines, or nothing) above, and the frame below it. Lines of the frame are cut
    /// to the terminal's width. Nothing is written if nothing changes.
    pub(super) fn draw(&mut self, text: &str, frame: &[String]) -> io::Result<()> {
        let (rows, columns) = self.size();
        // The last column stays free: a full line would make some terminals go to the next.
        let cut = |line: &String| truncate_str(line, columns.saturating_sub(1), "…").into_owned();
        // The row below the frame is the cursor's.
        let frame: Vec<String> = frame.iter().take(rows.saturating_sub(1)).map(cut).collect();
        if text.is_empty() && frame == self.drawn {
            return Ok(());
        }
        let mut bytes = self.erase(columns);
        bytes.push_str(text);
        for line in &frame {
            bytes.push_str(line);
            bytes.push('\n');
        }
        self.drawn = frame;
        self.out.write_all(bytes.as_bytes())?;
        self.out.flush()
    }

    /// The way back to the frame's first row, and everything from there on gone. A terminal that has become narrower
    /// has broken the frame's lines.
    fn erase(&self, columns: usize) -> String {
        let rows: usize = self.drawn.iter().map(|line| measure_text_width(line).div_ceil(columns).max(1)).sum();
        if rows == 0 { String::new() } else { format!("\r\x1b[{rows}A\x1b[J") }
    }
}

#[cfg(test)]
mod tests {
    use super::super::example_run::CapturedOutput;
    use super::*;

    fn lines(lines: &[&str]) -> Vec<String> {
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn finished_lines_go_above_and_the_frame_is_drawn_again_below() {
        let sheet = CapturedOutput::default();
        let mut screen = Screen::new(Box::new(sheet.clone()), || (24, 80));
        screen.draw("", &lines(&["one", "two"])).unwrap();
        screen.draw("ok: [h1]\n", &lines(&["one"])).unwrap();
        screen.draw("", &[]).unwrap();
        let expected = "one\ntwo\n\r\x1b[2A\x1b[Jok: [h1]\none\n\r\x1b[1A\x1b[J";
        assert_eq!(sheet.captured_text(), expected);
    }

    #[test]
    fn what_does_not_change_is_not_written() {
        let sheet = CapturedOutput::default();
        let mut screen = Screen::new(Box::new(sheet.clone()), || (24, 80));
        screen.draw("", &lines(&["same"])).unwrap();
        screen.draw("", &lines(&["same"])).unwrap();
        assert_eq!(sheet.captured_text(), "same\n");
    }

    #[test]
    fn the_frame_fits_into_a_small_terminal() {
        let sheet = CapturedOutput::default();
        let mut screen = Screen::new(Box::new(sheet.clone()), || (3, 6));
        screen.draw("", &lines(&["123456789", "ab", "never", "seen"])).unwrap();
        assert_eq!(sheet.captured_text(), "1234…\nab\n");
    }

    #[test]
    fn a_terminal_that_became_narrower_is_cleared_of_the_broken_lines() {
        let sheet = CapturedOutput::default();
        let mut screen = Screen::new(Box::new(sheet.clone()), || (24, 40));
        screen.draw("", &lines(&["a line of thirty columns, or so"])).unwrap();
        screen.size = || (24, 10);
        screen.draw("", &lines(&["short"])).unwrap();
        assert!(sheet.captured_text().ends_with("\r\x1b[4A\x1b[Jshort\n"), "{:?}", sheet.captured_text());
    }
}
