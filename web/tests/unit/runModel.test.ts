import { describe, expect, it } from 'vitest'
import type { Run, RunEvent, Snapshot, TaskInfo } from '../../src/api'
import { RunModel, STATES } from '../../src/lib/runModel'

const run: Run = {
  id: '01', command: 'apply', command_line: 'windlass apply', user: 'alice@ws', pid: 1, version: '0.1.0', check: false,
  started: '2026-11-27T08:00:00.000Z', deployment: null, stages: [], hosts: {}, running: true, ended: null, outcome: null,
  exit_code: null, complete: false, last_sequence: 0,
}
const info = (id: number): TaskInfo => ({ id, name: `Task ${id}`, role: null, action: 'copy', path: 'a.yml:1:1', handler: false })
const empty: Snapshot = { run, sequence: 0, hosts: [], tasks: [] }

/** Events with numbers and times, one second apart. */
function numbered(after: number, events: Partial<RunEvent>[]): RunEvent[] {
  return events.map((event, at) => ({
    run: '01', stage: null, event: '', ...event, sequence: after + at + 1, time: new Date(Date.UTC(2026, 10, 27, 8, 0, at)).toISOString(),
  }))
}
const result = (task: number, host: string, status: string, more = {}): Partial<RunEvent> =>
  ({ event: 'result', task: info(task), host, result: { status, changed: false, seconds: 1, ...more } as never })
const EVENTS = numbered(0, [
  { event: 'run_start' },
  { event: 'deployment', deployment: 'prod' },
  { event: 'stage_start', stage: 'etcd', check: false },
  { event: 'play_start', stage: 'etcd', play: 'Install etcd', hosts: ['h1', 'h2', 'h3'] },
  { event: 'task_start', stage: 'etcd', task: info(0) },
  { event: 'host_start', task: info(0), host: 'h1' },
  result(0, 'h1', 'changed'),
  result(0, 'h2', 'failed', { msg: 'no space', hint: 'free some' }),
  result(0, 'h3', 'unreachable', { msg: 'refused' }),
  { event: 'task_end', task: info(0) },
  { event: 'task_start', stage: 'etcd', task: info(1) },
  { event: 'host_start', task: info(1), host: 'h1' },
])
const at = (state: (typeof STATES)[number]) => STATES.indexOf(state)
function replay(model: RunModel, events: RunEvent[]) {
  for (const event of events) model.apply(event)
  return model
}
const tables = (model: RunModel) => ({
  hosts: model.hosts,
  tasks: model.tasks.map(({ id, seconds, counts, cells, stage }) => ({ id, seconds, counts, stage, cells: [...cells] })),
  hostCounts: model.hostCounts, failures: model.failures.map(({ task, host, msg, hint }) => [task.id, host, msg, hint]),
})

describe('a run followed by its events', () => {
  it('has a state for each task and host', () => {
    const model = replay(new RunModel(empty), EVENTS)
    expect(model.hosts).toEqual(['h1', 'h2', 'h3'])
    expect(model.state(model.task(0)!, 'h1')).toBe('changed')
    expect(model.state(model.task(1)!, 'h1')).toBe('running')
    expect(model.state(model.task(1)!, 'h2')).toBe('none')
    expect(model.state(model.task(0)!, 'unknown')).toBe('none')
    expect(model.task(0)!.counts[at('failed')]).toBe(1)
    expect(model.task(0)!.counts[at('running')]).toBe(0)
    expect(model.task(0)!.seconds).toBe(5)
    expect(model.run.deployment).toBe('prod')
    expect(model.failures.map(({ host, msg, hint }) => [host, msg, hint])).toEqual([['h2', 'no space', 'free some'], ['h3', 'refused', null]])
  })

  it('ignores events that it has, and notices missing ones', () => {
    const model = replay(new RunModel(empty), EVENTS)
    const before = structuredClone(tables(model))
    expect(EVENTS.map((event) => model.apply(event))).toEqual(EVENTS.map(() => 'known'))
    expect(model.apply({ ...EVENTS[0]!, sequence: EVENTS.length + 2 })).toBe('gap')
    expect(tables(model)).toEqual(before)
  })

  it('shows the hosts with problems first', () => {
    const model = replay(new RunModel(empty), EVENTS)
    expect(model.hostOrder().map((index) => model.hosts[index])).toEqual(['h3', 'h2', 'h1'])
  })

  it('knows the end of stages and of the run', () => {
    const model = replay(new RunModel(empty), EVENTS)
    replay(model, numbered(EVENTS.length, [
      { event: 'stage_end', stage: 'etcd', outcome: 'failed', changes: null },
      { event: 'run_end', outcome: 'failed', exit_code: 2 },
    ]))
    expect(model.run.stages[0]).toMatchObject({ stage: 'etcd', outcome: 'failed' })
    expect(model.run).toMatchObject({ running: false, outcome: 'failed', exit_code: 2, last_sequence: EVENTS.length + 2 })
  })

  it('keeps events that it does not know out', () => {
    const model = new RunModel(empty)
    expect(model.apply(numbered(0, [{ event: 'something_new', hosts: { a: 1 } }])[0]!)).toBe('applied')
    expect(model.tasks).toEqual([])
  })

  it('takes hosts that appear later, such as localhost', () => {
    const model = replay(new RunModel(empty), [...EVENTS, ...numbered(EVENTS.length, [result(1, 'localhost', 'ok')])])
    expect(model.hosts).toEqual(['h1', 'h2', 'h3', 'localhost'])
    expect(model.state(model.task(1)!, 'localhost')).toBe('ok')
    expect(model.state(model.task(0)!, 'localhost')).toBe('none')
  })
})

describe('a run from a snapshot', () => {
  const snapshot: Snapshot = {
    run, sequence: 10, hosts: ['h1', 'h2', 'h3'],
    tasks: [{
      ...info(0), stage: 'etcd', play: 'Install etcd', started: '2026-11-27T08:00:04.000Z', seconds: 5,
      results: {
        h1: { status: 'changed', seconds: 1, sequence: 7 },
        h2: { status: 'failed', seconds: 1, sequence: 8, msg: 'no space', hint: 'free some' },
        h3: { status: 'unreachable', seconds: 1, sequence: 9, msg: 'refused' },
      },
    }],
  }

  it('is the same as from all events', () => {
    const fromSnapshot = replay(new RunModel(snapshot), EVENTS)
    expect(tables(fromSnapshot)).toEqual(tables(replay(new RunModel(empty), EVENTS)))
  })

  it('does not change the snapshot', () => {
    const before = structuredClone(snapshot)
    replay(new RunModel(snapshot), numbered(10, [{ event: 'run_end', outcome: 'succeeded' }]))
    expect(snapshot).toEqual(before)
  })

  it('groups tasks by stage and play', () => {
    const task = (id: number, stage: string | null, play: string) => ({ ...snapshot.tasks[0]!, ...info(id), stage, play })
    const model = new RunModel({ ...snapshot, tasks: [task(0, 'etcd', 'A'), task(1, 'etcd', 'A'), task(2, 'etcd', 'B'), task(3, 'addons', 'B')] })
    expect(model.groups().map((group) => [group.stage, group.play, group.tasks.length])).toEqual([['etcd', 'A', 2], ['etcd', 'B', 1], ['addons', 'B', 1]])
  })
})
