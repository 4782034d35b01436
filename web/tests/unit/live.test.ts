import { beforeEach, afterEach, describe, expect, it, vi } from 'vitest'
import { readFileSync } from 'node:fs'
import { onSignedOut, type Run, type RunEvent, type Snapshot } from '../../src/api'
import { Follower, type Connection } from '../../src/lib/live'
import { RunModel, STATES } from '../../src/lib/runModel'

/** A run of `windlass playbook` on three hosts, one of which is unreachable, as `windlass logs --output json` prints it. */
const EVENTS: RunEvent[] = readFileSync('tests/unit/recorded.jsonl', 'utf8').trim().split('\n').map((line) => JSON.parse(line))
const RUN = {
  id: EVENTS[0]!.run, command: 'playbook', started: EVENTS[0]!.time, stages: [], hosts: {}, running: true, ended: null, outcome: null,
} as unknown as Run
const empty = (): Snapshot => ({ run: { ...RUN }, sequence: 0, hosts: [], tasks: [] })

/** A connection that the follower has asked for. */
class FakeStream {
  static all: FakeStream[] = []
  static get last() {
    return FakeStream.all.at(-1)!
  }
  isOpen = true
  #body!: ReadableStreamDefaultController<Uint8Array>
  #answer!: (response: Response) => void
  #fail!: (error: Error) => void
  readonly answer = new Promise<Response>((resolve, reject) => ([this.#answer, this.#fail] = [resolve, reject]))

  constructor(readonly url: string, readonly headers: Record<string, string>, signal: AbortSignal) {
    FakeStream.all.push(this)
    signal.addEventListener('abort', () => this.#end(() => this.#body?.error(signal.reason), () => this.#fail(signal.reason as Error)))
  }
  #end(...actions: (() => void)[]) {
    if (!this.isOpen) return
    this.isOpen = false
    for (const action of actions) action()
  }
  async accept(type = 'text/event-stream') {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void (this.#body = controller) })
    this.#answer(new Response(body, { headers: { 'Content-Type': type } }))
    await settle()
  }
  async refuse(status: number) {
    this.#end(() => this.#answer(new Response('{}', { status })))
    await settle()
  }
  async failToConnect() {
    this.#end(() => this.#fail(new TypeError('no connection')))
    await settle()
  }
  /** The server, or what is between, ends the connection. */
  async lose(error?: Error) {
    this.#end(() => (error ? this.#body.error(error) : this.#body.close()))
    await settle()
  }
  async write(text: string) {
    this.#body.enqueue(new TextEncoder().encode(text))
    await settle()
  }
  send = (events: RunEvent[]) => this.write(events.map((event) => `id: ${event.sequence}\ndata: ${JSON.stringify(event)}\n\n`).join(''))
  sendEnd = (run: object) => this.write(`event: end\ndata: ${JSON.stringify(run)}\n\n`)
}
/** Until all that is ready has been done. */
const settle = () => vi.advanceTimersByTimeAsync(0)

let listeners: (() => void)[] = []
const page = {
  hidden: false, baseURI: 'http://h/sub/#/runs/1',
  addEventListener: (_: string, listener: () => void) => listeners.push(listener),
  removeEventListener: (_: string, listener: () => void) => (listeners = listeners.filter((other) => other !== listener)),
}
let snapshots: (Snapshot | number)[] = []
let updates = 0
let model: RunModel
let states: Connection[] = []
let follower: Follower

beforeEach(async () => {
  vi.useFakeTimers()
  FakeStream.all = []
  listeners = []
  snapshots = []
  updates = 0
  states = []
  page.hidden = false
  vi.stubGlobal('document', page)
  vi.stubGlobal('localStorage', { getItem: () => 'key', removeItem: () => {} })
  vi.stubGlobal('fetch', async (url: string, { headers, signal }: { headers: Record<string, string>; signal: AbortSignal }) => {
    if (headers.Accept === 'text/event-stream') return new FakeStream(url, headers, signal).answer
    const next = snapshots.shift() ?? 503
    return typeof next === 'number' ? new Response('{}', { status: next }) : new Response(JSON.stringify(next))
  })
  model = new RunModel(empty())
  follower = new Follower(model, (changed) => {
    model = changed
    updates++
  }, (state) => states.push(state))
  await FakeStream.last.accept()
})
afterEach(() => {
  follower.close()
  vi.useRealTimers()
})

describe('following a run', () => {
  it('starts after the snapshot, below the path of the page, with the key of the session', () => {
    expect(FakeStream.last.url).toBe(`http://h/sub/api/v1/runs/${RUN.id}/events?after=0`)
    expect(FakeStream.last.headers).toEqual({ 'Accept': 'text/event-stream', 'Windlass-Key': 'key' })
    expect(states).toEqual(['live'])
  })

  it('comes to what the run itself reports', async () => {
    await FakeStream.last.send(EVENTS)
    vi.advanceTimersByTime(250)
    const recap = EVENTS.find((event) => event.event === 'recap')!.hosts as Record<string, Record<string, number>>
    for (const [host, counts] of Object.entries(recap)) {
      const mine = model.hostCounts[model.hosts.indexOf(host)]!
      const of = (state: (typeof STATES)[number]) => mine[STATES.indexOf(state)]!
      expect([of('failed'), of('unreachable'), of('skipped'), of('ignored'), of('ok') + of('changed') + of('ignored')])
        .toEqual([counts.failed, counts.unreachable, counts.skipped, counts.ignored, counts.ok])
      expect(of('running')).toBe(0)
    }
    expect(model.run).toMatchObject({ running: false, outcome: 'unreachable', exit_code: 4 })
  })

  it('updates the page at most four times a second', async () => {
    for (const event of EVENTS) {
      await FakeStream.last.send([event])
      vi.advanceTimersByTime(20)
    }
    vi.advanceTimersByTime(250)
    expect(updates).toBeLessThanOrEqual(Math.ceil((EVENTS.length * 20) / 250))
    expect(updates).toBeGreaterThan(2)
  })

  it('counts nothing twice when the server repeats events', async () => {
    await FakeStream.last.send(EVENTS.slice(0, 30))
    await FakeStream.last.send(EVENTS.slice(10))
    const once = new RunModel(empty())
    EVENTS.forEach((event) => once.apply(event))
    expect(model.hostCounts).toEqual(once.hostCounts)
    expect(FakeStream.all.length).toBe(1)
  })

  it('loads a new snapshot when events are missing', async () => {
    snapshots = [{ ...empty(), sequence: 40 }]
    const first = FakeStream.last
    await first.send([EVENTS[5]!, ...EVENTS.slice(0, 3)])
    await vi.advanceTimersByTimeAsync(300)
    expect([FakeStream.all.length, first.isOpen]).toEqual([2, false])
    expect(FakeStream.last.url).toMatch(/after=40$/)
    // What came after it in the old connection is left out.
    expect([model.sequence, model.tasks.length]).toEqual([40, 0])
  })

  it('tries again, less and less often, while the server refuses', async () => {
    snapshots = [503, 503, { ...empty(), sequence: 7 }]
    await FakeStream.last.lose()
    await vi.advanceTimersByTimeAsync(1000)
    await FakeStream.last.refuse(503)
    expect(states.at(-1)).toBe('retrying')
    await vi.advanceTimersByTimeAsync(1999)
    expect(snapshots.length).toBe(3)
    await vi.advanceTimersByTimeAsync(1 + 4000 + 8000)
    expect(snapshots.length).toBe(0)
    await FakeStream.last.accept()
    expect([FakeStream.all.length, FakeStream.last.url.split('=')[1], states.at(-1)]).toEqual([3, '7', 'live'])
  })

  it('never waits longer than 30 seconds', async () => {
    await FakeStream.last.lose()
    for (let attempt = 0; attempt < 12; attempt++) {
      await vi.advanceTimersByTimeAsync(30_000)
      expect(FakeStream.all.length).toBe(attempt + 2)
      await FakeStream.last.failToConnect()
    }
  })

  it('continues a lost connection where it was', async () => {
    await FakeStream.last.send(EVENTS.slice(0, 12))
    await FakeStream.last.write('id: 13\ndata: {"event":"host_sta')
    await FakeStream.last.lose(new TypeError('network error'))
    expect(states).toEqual(['live', 'retrying'])
    await vi.advanceTimersByTimeAsync(999)
    expect(FakeStream.all.length).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(FakeStream.last.url).toMatch(/after=12$/)
    await FakeStream.last.failToConnect()
    await vi.advanceTimersByTimeAsync(2000)
    await FakeStream.last.accept()
    await FakeStream.last.send(EVENTS.slice(12))
    expect([FakeStream.all.length, model.sequence, states.at(-1)]).toEqual([3, EVENTS.length, 'live'])
    // Anything that comes shows that the connection is good.
    await FakeStream.last.lose()
    await vi.advanceTimersByTimeAsync(1000)
    expect(FakeStream.all.length).toBe(4)
  })

  it('waits as long as the server says', async () => {
    await FakeStream.last.write(': hello\nretry: 5000\n\n')
    await FakeStream.last.lose()
    await vi.advanceTimersByTimeAsync(4999)
    expect(FakeStream.all.length).toBe(1)
    await vi.advanceTimersByTimeAsync(1)
    expect(FakeStream.all.length).toBe(2)
  })

  it('takes an answer that is no stream, and an event that is none, as a failure', async () => {
    await FakeStream.last.write('data: <html>\n\n')
    expect([states.at(-1), FakeStream.last.isOpen]).toEqual(['retrying', false])
    snapshots = [empty()]
    await vi.advanceTimersByTimeAsync(1000)
    expect(snapshots.length).toBe(0)
    await FakeStream.last.accept('text/html')
    expect([states.at(-1), FakeStream.last.isOpen, FakeStream.all.length]).toEqual(['retrying', false, 2])
  })

  for (const status of [401, 404]) {
    it(`does not try again after ${status}`, async () => {
      let signedOut = 0
      onSignedOut.call = () => signedOut++
      await FakeStream.last.lose()
      await vi.advanceTimersByTimeAsync(1000)
      await FakeStream.last.refuse(status)
      await vi.advanceTimersByTimeAsync(120_000)
      expect([FakeStream.all.length, signedOut]).toEqual([2, status === 401 ? 1 : 0])
    })
  }

  it('has no connection while the page is hidden', async () => {
    await FakeStream.last.send(EVENTS.slice(0, 12))
    page.hidden = true
    listeners.forEach((listener) => listener())
    expect(FakeStream.last.isOpen).toBe(false)
    await vi.advanceTimersByTimeAsync(120_000)
    expect([FakeStream.all.length, states]).toEqual([1, ['live']])
    page.hidden = false
    listeners.forEach((listener) => listener())
    expect(FakeStream.last.url).toMatch(/after=12$/)
  })

  it('does not connect while the page is hidden, also after a lost connection', async () => {
    await FakeStream.last.lose()
    page.hidden = true
    listeners.forEach((listener) => listener())
    await vi.advanceTimersByTimeAsync(120_000)
    expect(FakeStream.all.length).toBe(1)
    page.hidden = false
    listeners.forEach((listener) => listener())
    expect(FakeStream.all.length).toBe(2)
  })

  it('ends with the run', async () => {
    await FakeStream.last.send(EVENTS)
    await FakeStream.last.sendEnd({ ...RUN, running: false, outcome: 'unreachable' })
    expect([states.at(-1), FakeStream.last.isOpen, model.run.running]).toEqual(['ended', false, false])
    listeners.forEach((listener) => listener())
    await vi.advanceTimersByTimeAsync(120_000)
    expect(FakeStream.all.length).toBe(1)
  })

  it('waits for the run itself when only its last event has come', async () => {
    await FakeStream.last.send(EVENTS)
    await FakeStream.last.lose()
    await vi.advanceTimersByTimeAsync(1000)
    expect(FakeStream.last.url).toMatch(new RegExp(`after=${EVENTS.length}$`))
  })

  it('stops when the page leaves the run', async () => {
    const { last } = FakeStream
    follower.close()
    expect([last.isOpen, listeners]).toEqual([false, []])
    await vi.advanceTimersByTimeAsync(120_000)
    expect([FakeStream.all.length, states]).toEqual([1, ['live']])
  })
})
