/** Output of programs as text with styles. Never as HTML. */

export interface Span { text: string; classes: string; /** A character that would be invisible, or change the order of others. */ hidden?: boolean }

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white']

// Colours (CSI … m) are read; other CSI sequences, OSC sequences (titles, links) and two-character escapes are left out.
const ESCAPE = /\x1b\[([0-9;:]*)m|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]/g

// Control characters except tab and line feed; marks that change the direction; zero-width characters; the soft hyphen.
const HIDDEN = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb]/g

interface Style { colour: string | null; bold: boolean; dim: boolean; italic: boolean; underline: boolean; reverse: boolean }
const PLAIN: Style = { colour: null, bold: false, dim: false, italic: false, underline: false, reverse: false }

/** A visible form of a hidden character: `^G` or `<U+202E>`. */
export function visible(character: string): string {
  const point = character.codePointAt(0)!
  if (point < 0x20 || point === 0x7f) return `^${String.fromCharCode(point ^ 0x40)}`
  return `<U+${point.toString(16).toUpperCase().padStart(4, '0')}>`
}

/** All of a text with hidden characters made visible, for names and messages. */
export const showHidden = (text: string): string => text.replace(HIDDEN, visible)

export function toSpans(text: string): Span[] {
  const spans: Span[] = []
  let style = PLAIN
  let at = 0
  const add = (part: string) => {
    const classes = classesOf(style)
    let start = 0
    for (const match of part.matchAll(HIDDEN)) {
      if (match.index > start) spans.push({ text: part.slice(start, match.index), classes })
      spans.push({ text: visible(match[0]), classes, hidden: true })
      start = match.index + match[0].length
    }
    if (start < part.length) spans.push({ text: part.slice(start), classes })
  }
  const plain = text.replaceAll('\r\n', '\n')
  for (const match of plain.matchAll(ESCAPE)) {
    add(plain.slice(at, match.index))
    if (match[1] !== undefined) style = withCodes(style, match[1])
    at = match.index + match[0].length
  }
  add(plain.slice(at))
  return spans
}

function withCodes(before: Style, codes: string): Style {
  const style = { ...before }
  const numbers = (codes || '0').split(/[;:]/).map(Number)
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i]!
    if (code === 0) Object.assign(style, PLAIN)
    else if (code === 1) style.bold = true
    else if (code === 2) style.dim = true
    else if (code === 3) style.italic = true
    else if (code === 4) style.underline = true
    else if (code === 7) style.reverse = true
    else if (code === 22) style.bold = style.dim = false
    else if (code === 23) style.italic = false
    else if (code === 24) style.underline = false
    else if (code === 27) style.reverse = false
    else if (code >= 30 && code <= 37) style.colour = COLOURS[code - 30]!
    else if (code >= 90 && code <= 97) style.colour = COLOURS[code - 90]!
    else if (code === 39) style.colour = null
    else if (code === 38 || code === 48) {
      // 38;5;N and 38;2;R;G;B: the first 16 colours of a palette are known, others are left as they were.
      const palette = numbers[i + 1] === 5
      if (code === 38 && palette && (numbers[i + 2] ?? 16) < 16) style.colour = COLOURS[numbers[i + 2]! % 8]!
      i += palette ? 2 : 4
    }
  }
  return style
}

function classesOf(style: Style): string {
  const classes = style.colour ? [`ansi-${style.colour}`] : []
  for (const name of ['bold', 'dim', 'italic', 'underline', 'reverse'] as const) if (style[name]) classes.push(`ansi-${name}`)
  return classes.join(' ')
}

export interface Cut { text: string; cutChars: number; cutLines: number }

/** The beginning of a text that is too long to show at once. */
export function cut(text: string, maxLines = 200, maxLine = 2000): Cut {
  const lines = text.split('\n')
  const kept = lines.slice(0, maxLines)
  let cutChars = 0
  const short = kept.map((line) => {
    if (line.length <= maxLine) return line
    cutChars += line.length - maxLine
    return `${line.slice(0, maxLine)}…`
  })
  return { text: short.join('\n'), cutChars, cutLines: lines.length - kept.length }
}
