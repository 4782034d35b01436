/** The state of a run: a snapshot, and the events after it. Knows nothing of the page. */

import type { Outcome, Run, RunEvent, Snapshot, TaskInfo } from '../api'

/** The states of a task on a host; a cell of the matrix holds an index of this list. */
export const STATES = ['none', 'running', 'ok', 'changed', 'skipped', 'ignored', 'failed', 'unreachable'] as const
export type State = (typeof STATES)[number]
const NONE = 0
const RUNNING = 1

/** In which order to show counts and hosts: what needs attention first. */
export const BY_ATTENTION: State[] = ['unreachable', 'failed', 'ignored', 'changed', 'ok', 'skipped', 'running']

const code = (state: string) => Math.max(STATES.indexOf(state as State), NONE)
export const isProblem = (cell: number) => cell >= 6

export interface Task extends TaskInfo {
  stage: string | null
  /** Which play of the run this is; plays may have the same name. */
  playIndex: number
  play: string
  started: string
  seconds: number | null
  /** One of STATES for each host, in the order of the model's hosts. */
  cells: Uint8Array
  /** How many hosts are in each of STATES. */
  counts: number[]
}

export interface Failure { task: Task; host: string; unreachable: boolean; msg: string | null; hint: string | null }

export interface Group { stage: string | null; play: string; playIndex: number; tasks: Task[] }

export type Applied = 'applied' | 'known' | 'gap'

export class RunModel {
  run: Run
  sequence: number
  hosts: string[] = []
  tasks: Task[] = []
  failures: Failure[] = []
  /** How many tasks of each host are in each of STATES. */
  hostCounts: number[][] = []
  #hostIndex = new Map<string, number>()
  #byId = new Map<number, Task>()
  #play = ''
  #playIndex = -1

  constructor(snapshot: Snapshot) {
    this.run = structuredClone(snapshot.run)
    this.sequence = snapshot.sequence
    this.#addHosts(snapshot.hosts)
    let before: { play: string; stage: string | null } | null = null
    for (const entry of snapshot.tasks) {
      const play = entry.play ?? ''
      if (!before || before.play !== play || before.stage !== entry.stage) this.#startPlay(play)
      before = { play, stage: entry.stage }
      const { results, ...info } = entry
      const task = this.#addTask(info, entry.stage, entry.started)
      task.seconds = entry.seconds
      for (const host in results) {
        const result = results[host]!
        const cell = code(result.status)
        this.#setCell(task, host, cell)
        if (isProblem(cell)) this.#addFailure(task, host, cell, result.msg, result.hint)
      }
    }
  }

  /** Takes the next event. 'gap': events before it are missing, so the snapshot must be loaded again. */
  apply(event: RunEvent): Applied {
    if (event.sequence <= this.sequence) return 'known'
    if (event.sequence > this.sequence + 1) return 'gap'
    this.sequence = event.sequence
    this.run.last_sequence = event.sequence
    this.#change(event)
    return 'applied'
  }

  task(id: number): Task | undefined {
    return this.#byId.get(id)
  }

  state(task: Task, host: string): State {
    const index = this.#hostIndex.get(host)
    return STATES[index === undefined ? NONE : (task.cells[index] ?? NONE)]!
  }

  /** The tasks, in order, by stage and play. */
  groups(): Group[] {
    const groups: Group[] = []
    for (const task of this.tasks) {
      const last = groups.at(-1)
      if (last && last.playIndex === task.playIndex && last.stage === task.stage) last.tasks.push(task)
      else groups.push({ stage: task.stage, play: task.play, playIndex: task.playIndex, tasks: [task] })
    }
    return groups
  }

  /** Indexes of hosts: those with problems first, otherwise in the order of the run. */
  hostOrder(): number[] {
    const rank = (index: number) => {
      const counts = this.hostCounts[index]!
      return counts[code('unreachable')] ? 0 : counts[code('failed')] ? 1 : 2
    }
    return this.hosts.map((_, index) => index).sort((a, b) => rank(a) - rank(b) || a - b)
  }

  #change(event: RunEvent) {
    const { run } = this
    switch (event.event) {
      case 'deployment':
        run.deployment = event.deployment ?? run.deployment
        break
      case 'stage_start':
        run.stages.push({
          stage: event.stage ?? '', check: event.check ?? false, started: event.time, ended: null, outcome: null, changes: null,
        })
        break
      case 'stage_end': {
        const stage = run.stages.findLast((stage) => stage.stage === event.stage && !stage.ended)
        if (stage) {
          stage.ended = event.time
          stage.outcome = (event.outcome ?? null) as Outcome | null
          stage.changes = event.changes ?? null
        }
        break
      }
      case 'play_start':
        this.#startPlay(event.play ?? '')
        this.#addHosts(event.hosts as string[])
        break
      case 'task_start':
        this.#addTask(event.task!, event.stage, event.time)
        break
      case 'host_start':
        this.#setCell(this.#taskOf(event), event.host!, RUNNING)
        break
      case 'result': {
        const task = this.#taskOf(event)
        const cell = code(event.result!.status)
        this.#setCell(task, event.host!, cell)
        if (isProblem(cell)) this.#addFailure(task, event.host!, cell, event.result!.msg, event.result!.hint)
        break
      }
      case 'task_end': {
        const task = this.#taskOf(event)
        task.seconds = (Date.parse(event.time) - Date.parse(task.started)) / 1000
        break
      }
      case 'run_end':
        run.running = false
        run.ended = event.time
        run.outcome = event.outcome ?? null
        run.exit_code = event.exit_code ?? null
    }
  }

  #startPlay(name: string) {
    this.#play = name
    this.#playIndex++
  }

  #addHosts(hosts: string[]) {
    for (const host of hosts) {
      if (this.#hostIndex.has(host)) continue
      this.#hostIndex.set(host, this.hosts.length)
      this.hosts.push(host)
      this.hostCounts.push(STATES.map(() => 0))
    }
  }

  #addTask(info: TaskInfo, stage: string | null, started: string): Task {
    const { id, name, role, action, path, handler } = info
    const task: Task = {
      id, name, role, action, path, handler, stage, started,
      play: this.#play, playIndex: this.#playIndex, seconds: null,
      cells: new Uint8Array(this.hosts.length), counts: STATES.map(() => 0),
    }
    this.tasks.push(task)
    this.#byId.set(id, task)
    return task
  }

  #taskOf(event: RunEvent): Task {
    return this.#byId.get(event.task!.id) ?? this.#addTask(event.task!, event.stage, event.time)
  }

  #setCell(task: Task, host: string, cell: number) {
    let index = this.#hostIndex.get(host)
    if (index === undefined) {
      this.#addHosts([host])
      index = this.hosts.length - 1
    }
    if (index >= task.cells.length) {
      const cells = new Uint8Array(this.hosts.length)
      cells.set(task.cells)
      task.cells = cells
    }
    const before = task.cells[index]!
    if (before === cell) return
    task.cells[index] = cell
    const counts = this.hostCounts[index]!
    if (before !== NONE) {
      task.counts[before]!--
      counts[before]!--
    }
    task.counts[cell]!++
    counts[cell]!++
  }

  #addFailure(task: Task, host: string, cell: number, msg?: string, hint?: string) {
    this.failures.push({ task, host, unreachable: STATES[cell] === 'unreachable', msg: msg ?? null, hint: hint ?? null })
  }
}
