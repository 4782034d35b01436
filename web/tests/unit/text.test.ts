import { describe, expect, it } from 'vitest'
import { cut, showHidden, toSpans } from '../../src/lib/ansi'
import { diffLines, parseUnified } from '../../src/lib/diff'
import { ago, bytes, duration, localTime, runDuration, utcTime } from '../../src/lib/format'

describe('output of programs', () => {
  it('has colours and styles', () => {
    expect(toSpans('a\x1b[31mred\x1b[1mbold\x1b[0mplain')).toEqual([
      { text: 'a', classes: '' }, { text: 'red', classes: 'ansi-red' }, { text: 'bold', classes: 'ansi-red ansi-bold' },
      { text: 'plain', classes: '' },
    ])
    expect(toSpans('\x1b[92mbright\x1b[mplain').map((span) => span.classes)).toEqual(['ansi-green', ''])
    expect(toSpans('\x1b[38;5;1mpalette\x1b[38;2;1;2;3mrgb\x1b[4munder').map((span) => span.classes)).toEqual(['ansi-red', 'ansi-red', 'ansi-red ansi-underline'])
  })

  it('leaves out other escape sequences', () => {
    expect(toSpans('\x1b[2J\x1b[1;1H\x1b]0;title\x07\x1b]8;;http://x\x1b\\link\x1bM')).toEqual([{ text: 'link', classes: '' }])
  })

  it('shows hidden characters', () => {
    expect(toSpans('a\u202eb\x07c\tok\r\n').map((span) => span.text)).toEqual(['a', '<U+202E>', 'b', '^G', 'c\tok\n'])
    expect(toSpans('\x1b[31m\u200b')).toEqual([{ text: '<U+200B>', classes: 'ansi-red', hidden: true }])
    expect(showHidden('h1\x1b[31m\x7f\x85')).toBe('h1^[[31m^?<U+0085>')
    expect(showHidden('plain 中文 é 👍')).toBe('plain 中文 é 👍')
  })

  it('never makes markup', () => {
    expect(toSpans('<img src=x onerror=alert(1)>')).toEqual([{ text: '<img src=x onerror=alert(1)>', classes: '' }])
  })

  it('is cut when it is long', () => {
    expect(cut('short')).toEqual({ text: 'short', cutChars: 0, cutLines: 0 })
    expect(cut('x'.repeat(30_000))).toMatchObject({ cutChars: 28_000, cutLines: 0 })
    expect(cut('a\nb\nc', 2)).toEqual({ text: 'a\nb', cutChars: 0, cutLines: 1 })
  })
})

describe('differences', () => {
  const kinds = (lines: { kind: string; text: string }[]) => lines.map((line) => line.kind + line.text)
  it('are the changed lines with lines around them', () => {
    expect(kinds(diffLines('a\nb\nc\nd\ne\nf\n', 'a\nb\nC\nd\ne\nf\n', 1))).toEqual(['@…', ' b', '-c', '+C', ' d', '@…'])
    expect(kinds(diffLines('', 'new\n'))).toEqual(['+new'])
    expect(kinds(diffLines('a\nx\nb\n', 'a\nb\ny\n'))).toEqual([' a', '-x', ' b', '+y'])
    expect(diffLines('same\n', 'same\n')).toEqual([])
  })
  it('of plans are read from unified diffs', () => {
    expect(kinds(parseUnified('--- a\n+++ b\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n'))).toEqual(['@--- a', '@+++ b', '@@@ -1,2 +1,2 @@', ' x', '-y', '+z'])
  })
  it('of large texts take little time', () => {
    const text = (sign: string) => Array.from({ length: 20_000 }, (_, line) => `${line}${line % 7 ? '' : sign}`).join('\n')
    const start = performance.now()
    expect(diffLines(text('a'), text('b')).length).toBeGreaterThan(1000)
    expect(performance.now() - start).toBeLessThan(1000)
  })
})

describe('times and sizes', () => {
  const now = Date.parse('2026-11-27T09:00:00Z')
  it('have ages in both languages', () => {
    expect(ago('2026-11-27T08:57:00Z', now, 'en')).toBe('3 minutes ago')
    expect(ago('2026-11-26T08:57:00Z', now, 'en')).toBe('yesterday')
    expect(ago('2026-12-27T09:00:00Z', now, 'zh')).toBe('下个月')
    expect(ago('2026-11-27T08:57:00Z', now, 'zh')).toBe('3分钟前')
    expect(ago('no time', now, 'en')).toBe('no time')
  })
  it('have durations', () => {
    expect([0.0123, 0.42, 12.4, 65, 3600 * 2 + 7 * 60].map(duration)).toEqual(['12 ms', '0.4 s', '12 s', '1 min 05 s', '2 h 07 min'])
    expect([59.7, 0.0999, -1].map(duration)).toEqual(['1 min 00 s', '0.1 s', '0 ms'])
  })
  it('have the duration of a run', () => {
    const run = { started: '2026-11-27T08:58:00Z', ended: null, running: true }
    expect(runDuration(run, now)).toBe('2 min 00 s')
    expect(runDuration({ ...run, running: false }, now)).toBe('–')
    expect(runDuration({ ...run, running: false, ended: '2026-11-27T08:58:03.500Z' }, now)).toBe('3.5 s')
  })
  it('are in local time and UTC', () => {
    expect(localTime('2026-11-27T08:59:08.278Z')).toMatch(/^2026-11-2[678] \d\d:\d\d:08$/)
    expect(utcTime('2026-11-27T08:59:08.278Z')).toBe('2026-11-27 08:59:08 UTC')
    expect(localTime('?')).toBe('?')
  })
  it('have sizes', () => {
    expect([0, 1023, 1536, 34_344_960].map(bytes)).toEqual(['0 B', '1023 B', '1.5 KiB', '33 MiB'])
  })
})
