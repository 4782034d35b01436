import { beforeEach, afterEach, describe, expect, it, vi } from 'vitest'
import { readFileSync } from 'node:fs'
import type { Run, RunEvent, Snapshot } from '../../src/api'
import { Follower, type Connection } from '../../src/lib/live'
import { RunModel, STATES } from '../../src/lib/runModel'

/** A run of `windlass playbook` on three hosts, one of which is unreachable, as `windlass logs --output json` prints it. */
const EVENTS: RunEvent[] = readFileSync('tests/unit/recorded.jsonl', 'utf8').trim().split('\n').map((line) => JSON.parse(line))
const RUN = {
  id: EVENTS[0]!.run, command: 'playbook', started: EVENTS[0]!.time, stages: [], hosts: {}, running: true, ended: null, outcome: null,
} as unknown as Run
const empty = (): Snapshot => ({ run: { ...RUN }, sequence: 0, hosts: [], tasks: [] })

class FakeSource {
  static all: FakeSource[] = []
  static CLOSED = 2
  readyState = 1
  onopen?: () => void
  onmessage?: (message: { data: string }) => void
  onerror?: () => void
  end?: (message: { data: string }) => void
  constructor(readonly url: string) {
    FakeSource.all.push(this)
  }
  addEventListener(_name: string, listener: (message: { data: string }) => void) {
    this.end = listener
  }
  close() {
    this.readyState = FakeSource.CLOSED
  }
  send(events: RunEvent[]) {
    for (const event of events) this.onmessage!({ data: JSON.stringify(event) })
  }
  static get last() {
    return FakeSource.all.at(-1)!
  }
}

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

beforeEach(() => {
  vi.useFakeTimers()
  FakeSource.all = []
  listeners = []
  snapshots = []
  updates = 0
  states = []
  page.hidden = false
  vi.stubGlobal('EventSource', FakeSource)
  vi.stubGlobal('document', page)
  vi.stubGlobal('fetch', async () => {
    const next = snapshots.shift() ?? 503
    return typeof next === 'number' ? new Response('{}', { status: next }) : new Response(JSON.stringify(next))
  })
  model = new RunModel(empty())
  follower = new Follower(model, (changed) => {
    model = changed
    updates++
  }, (state) => states.push(state))
})
afterEach(() => {
  follower.close()
  vi.useRealTimers()
})

describe('following a run', () => {
  it('starts after the snapshot, below the path of the page', () => {
    expect(FakeSource.last.url).toBe(`http://h/sub/api/v1/runs/${RUN.id}/events?after=0`)
  })

  it('comes to what the run itself reports', () => {
    FakeSource.last.send(EVENTS)
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

  it('updates the page at most four times a second', () => {
    for (const event of EVENTS) {
      FakeSource.last.send([event])
      vi.advanceTimersByTime(20)
    }
    vi.advanceTimersByTime(250)
    expect(updates).toBeLessThanOrEqual(Math.ceil((EVENTS.length * 20) / 250))
    expect(updates).toBeGreaterThan(2)
  })

  it('counts nothing twice when the server repeats events', () => {
    FakeSource.last.send(EVENTS.slice(0, 30))
    FakeSource.last.send(EVENTS.slice(10))
    const once = new RunModel(empty())
    EVENTS.forEach((event) => once.apply(event))
    expect(model.hostCounts).toEqual(once.hostCounts)
    expect(FakeSource.all.length).toBe(1)
  })

  it('loads a new snapshot when events are missing', async () => {
    snapshots = [{ ...empty(), sequence: 40 }]
    FakeSource.last.send([EVENTS[5]!])
    await vi.advanceTimersByTimeAsync(300)
    expect(FakeSource.all.length).toBe(2)
    expect(FakeSource.last.url).toMatch(/after=40$/)
    expect(model.sequence).toBe(40)
  })

  it('tries again, less and less often, while the server refuses', async () => {
    snapshots = [503, 503, { ...empty(), sequence: 7 }]
    FakeSource.last.close()
    FakeSource.last.onerror!()
    expect(states.at(-1)).toBe('retrying')
    await vi.advanceTimersByTimeAsync(999)
    expect(snapshots.length).toBe(3)
    await vi.advanceTimersByTimeAsync(1 + 2000 + 4000)
    expect(snapshots.length).toBe(0)
    FakeSource.last.onopen!()
    expect([FakeSource.all.length, states.at(-1)]).toEqual([2, 'live'])
  })

  it('leaves short interruptions to the browser', () => {
    FakeSource.last.readyState = 0
    FakeSource.last.onerror!()
    vi.advanceTimersByTime(60_000)
    expect(FakeSource.all.length).toBe(1)
  })

  it('has no connection while the page is hidden', () => {
    FakeSource.last.send(EVENTS.slice(0, 12))
    page.hidden = true
    listeners.forEach((listener) => listener())
    expect(FakeSource.last.readyState).toBe(FakeSource.CLOSED)
    page.hidden = false
    listeners.forEach((listener) => listener())
    expect(FakeSource.last.url).toMatch(/after=12$/)
  })

  it('ends with the run', () => {
    FakeSource.last.send(EVENTS)
    FakeSource.last.end!({ data: JSON.stringify({ ...RUN, running: false, outcome: 'unreachable' }) })
    expect([states.at(-1), FakeSource.last.readyState, model.run.running]).toEqual(['ended', FakeSource.CLOSED, false])
  })
})
