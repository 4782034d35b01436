/** Server-sent events out of the bytes of an answer, as https://html.spec.whatwg.org/#parsing-an-event-stream has it. */

export interface Message { event: string; data: string; id: string }

export class EventStreamParser {
  /** The time to wait before the next connection, in milliseconds, if the server has said one. */
  retry: number | null = null
  #decoder = new TextDecoder()
  #line = ''
  #endsWithReturn = false
  #id = ''
  #event = ''
  #data: string[] = []

  /** The messages that end in these bytes. They may begin and end anywhere, also within a character. */
  push(bytes: Uint8Array): Message[] {
    let text = this.#decoder.decode(bytes, { stream: true })
    if (text === '') return []
    // The second half of a line's end.
    if (this.#endsWithReturn && text.startsWith('\n')) text = text.slice(1)
    this.#endsWithReturn = text.endsWith('\r')
    const lines = text.split(/\r\n|\r|\n/)
    const rest = lines.pop()!
    const messages: Message[] = []
    for (const line of lines) {
      const message = this.#read(this.#line + line)
      this.#line = ''
      if (message) messages.push(message)
    }
    this.#line += rest
    return messages
  }

  #read(line: string): Message | null {
    if (line === '') return this.#message()
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line[colon + 1] === ' ' ? colon + 2 : colon + 1)
    if (name === 'data') this.#data.push(value)
    else if (name === 'event') this.#event = value
    else if (name === 'id' && !value.includes('\0')) this.#id = value
    else if (name === 'retry' && /^\d+$/.test(value)) this.retry = Number(value)
    return null
  }

  #message(): Message | null {
    const message = { event: this.#event || 'message', data: this.#data.join('\n'), id: this.#id }
    const hasData = this.#data.length > 0
    this.#event = ''
    this.#data = []
    return hasData ? message : null
  }
}
