import { describe, expect, it } from 'vitest'
import { EventStreamParser, type Message } from '../../src/lib/eventStream'

const bytesOf = (text: string) => new TextEncoder().encode(text)
function parse(...chunks: (string | Uint8Array)[]) {
  const parser = new EventStreamParser()
  const messages = chunks.flatMap((chunk) => parser.push(typeof chunk === 'string' ? bytesOf(chunk) : chunk))
  return { messages, retry: parser.retry }
}
const data = (messages: Message[]) => messages.map((message) => message.data)

const STREAM = [
  '\ufeff: events of a run', 'retry: 2000', '', 'id: 1', 'data: {"host":"é 中文 👍"}', '', ':', '',
  'id: 2', 'data: a', 'data:', 'data:  b: c', '', 'event: end', 'data:{}', '', 'unknown: x', 'data', '', '',
].join('\n')
const MESSAGES = [
  { event: 'message', data: '{"host":"é 中文 👍"}', id: '1' }, { event: 'message', data: 'a\n\n b: c', id: '2' },
  { event: 'end', data: '{}', id: '2' }, { event: 'message', data: '', id: '2' },
]

describe('a stream of events', () => {
  for (const [name, end] of [['LF', '\n'], ['CRLF', '\r\n'], ['CR', '\r']] as const) {
    const bytes = bytesOf(STREAM.replaceAll('\n', end))
    it(`is read with ${name}, however it is cut`, () => {
      expect(parse(bytes)).toEqual({ messages: MESSAGES, retry: 2000 })
      for (let at = 0; at <= bytes.length; at++) {
        expect(parse(bytes.slice(0, at), bytes.slice(at)), `cut at ${at}`).toEqual({ messages: MESSAGES, retry: 2000 })
        expect(parse(bytes.slice(0, at), new Uint8Array(), bytes.slice(at, at + 1), bytes.slice(at + 1)).messages).toEqual(MESSAGES)
      }
      expect(parse(...[...bytes].map((byte) => Uint8Array.of(byte))).messages).toEqual(MESSAGES)
    })
  }

  it('gives a message as soon as it has ended', () => {
    const parser = new EventStreamParser()
    expect(data(parser.push(bytesOf('data: a\r\n\r')))).toEqual(['a'])
    expect(data(parser.push(bytesOf('\ndata: b\n')))).toEqual([])
    expect(data(parser.push(bytesOf('\n')))).toEqual(['b'])
  })

  it('may mix the ends of lines', () => {
    expect(data(parse('data: a\r\ndata: b\rdata: c\n\r\n').messages)).toEqual(['a\nb\nc'])
    expect(data(parse('data: a\r', '\r', 'data: b\n\n').messages)).toEqual(['a', 'b'])
  })

  it('has no message without data, and none that does not end', () => {
    expect(parse('event: end\nid: 3\n\ndata: a\n\n').messages).toEqual([{ event: 'message', data: 'a', id: '3' }])
    expect(parse('data: a\n').messages).toEqual([])
  })

  it('leaves out times and ids that are none', () => {
    expect(parse('retry: 5s\nretry:\nretry: -1\n\n').retry).toBeNull()
    expect(parse('id: 1\nid: 2\0\ndata: a\n\nid\ndata: b\n\n').messages.map(({ id }) => id)).toEqual(['1', ''])
  })

  it('of a long line takes little time', () => {
    const parser = new EventStreamParser()
    const start = performance.now()
    parser.push(bytesOf('data: '))
    for (let part = 0; part < 2000; part++) parser.push(bytesOf('x'.repeat(1000)))
    expect(parser.push(bytesOf('\n\n'))[0]!.data.length).toBe(2_000_000)
    expect(performance.now() - start).toBeLessThan(1000)
  })
})
