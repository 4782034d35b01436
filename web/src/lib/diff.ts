/** Differences between two texts, line by line. */

export interface DiffLine { kind: ' ' | '+' | '-' | '@'; text: string }

const MAX_CELLS = 4_000_000

/** A unified diff as lines with their kind. */
export function parseUnified(text: string): DiffLine[] {
  return text
    .replace(/\n$/, '')
    .split('\n')
    .map((line): DiffLine => {
      if (/^(---|\+\+\+|@@)/.test(line)) return { kind: '@', text: line }
      const kind = line[0] === '+' || line[0] === '-' ? line[0] : ' '
      return { kind, text: kind === ' ' ? line.replace(/^ /, '') : line.slice(1) }
    })
}

/** The changed lines, with `context` lines around them. */
export function diffLines(before: string, after: string, context = 3): DiffLine[] {
  const a = splitLines(before)
  const b = splitLines(after)
  let start = 0
  while (start < a.length && start < b.length && a[start] === b[start]) start++
  let end = 0
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++
  const same = (lines: string[]) => lines.map((text): DiffLine => ({ kind: ' ', text }))
  const middle = changedLines(a.slice(start, a.length - end), b.slice(start, b.length - end))
  const all = [...same(a.slice(0, start)), ...middle, ...same(a.slice(a.length - end))]
  return withContext(all, context)
}

function splitLines(text: string): string[] {
  const lines = text.split('\n')
  if (lines.at(-1) === '') lines.pop()
  return lines
}

/** By the longest common subsequence. */
function changedLines(a: string[], b: string[]): DiffLine[] {
  const removed = a.map((text): DiffLine => ({ kind: '-', text }))
  const added = b.map((text): DiffLine => ({ kind: '+', text }))
  if (!a.length || !b.length || a.length * b.length > MAX_CELLS) return [...removed, ...added]
  const width = b.length + 1
  const common = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      common[i * width + j] = a[i] === b[j]
        ? common[(i + 1) * width + j + 1]! + 1
        : Math.max(common[(i + 1) * width + j]!, common[i * width + j + 1]!)
    }
  }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: ' ', text: a[i++]! })
      j++
    } else if (j >= b.length || (i < a.length && common[(i + 1) * width + j]! >= common[i * width + j + 1]!)) {
      lines.push(removed[i++]!)
    } else {
      lines.push(added[j++]!)
    }
  }
  return lines
}

function withContext(lines: DiffLine[], context: number): DiffLine[] {
  const near = new Uint8Array(lines.length)
  lines.forEach((line, at) => {
    if (line.kind !== ' ') near.fill(1, Math.max(at - context, 0), at + context + 1)
  })
  const out: DiffLine[] = []
  lines.forEach((line, at) => {
    if (near[at]) out.push(line)
    else if (out.at(-1)?.kind !== '@') out.push({ kind: '@', text: '…' })
  })
  return out.length === 1 && out[0]!.kind === '@' ? [] : out
}
